/** The calls of browsers without a token: sign-up, and sign-in through a provider. */
import { request } from 'undici';
import { holdEndpoint } from './results.js';
import type { Answer, Service } from './service.js';

export interface OpenCall {
  readonly front?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body to send as it is, instead of a JSON body. */
  readonly raw?: string;
}

/** Makes a call without a token. Adds the token in the answer to the tokens that `stop` searches for. */
export async function callOpenly(
  service: Service,
  verb: 'GET' | 'POST',
  path: string,
  body?: unknown,
  { front = 0, headers = {}, raw }: OpenCall = {},
): Promise<Answer> {
  const answer = await request(`${service.fronts[front]?.url}${path}`, {
    method: verb,
    headers: verb === 'GET' ? headers : { 'content-type': 'application/json', ...headers },
    body: verb === 'GET' ? null : (raw ?? JSON.stringify(body ?? {})),
  });
  const parsed = (await answer.body.json()) as Answer['body'];
  if (typeof parsed?.result?.token === 'string') service.issued(parsed.result.token);
  return holdEndpoint(verb, path, { status: answer.statusCode, headers: answer.headers, body: parsed });
}
