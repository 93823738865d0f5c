/** Makes API calls with an operator's token. The token is stored for this tab only and is never part of a URL. */
import { Cell } from '../signal.js';

const key = 'petrel.ops';

function kept(): string {
  try {
    return sessionStorage.getItem(key) ?? '';
  } catch {
    return '';
  }
}

/** The operator's token, or '' when nobody is signed in. */
export const token = new Cell(kept());
/** Why the token was removed. The sign-in page shows this text. */
export const refusal = new Cell('');

export function keepToken(secret: string): void {
  try {
    if (secret === '') sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, secret);
  } catch {
    // If the browser does not allow storage, the token is lost when the page is closed.
  }
  token.set(secret);
}

export class CallFailure extends Error {
  readonly status: number;

  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

interface AnswerBody<T> {
  ok?: boolean;
  result?: T;
  description?: string;
}

const answer_ms_max = 15_000;

/**
 * Returns the `result` of a call below `/api/admin/`. If the service refuses the token, removes it. Throws a
 * CallFailure, or the error of `fetch`.
 */
export const call = <T>(path: string, body?: object, as = token.value): Promise<T> =>
  send(body ? 'POST' : 'GET', path, body, as);

/** Makes a DELETE call, as `call` does. */
export const remove = (path: string): Promise<true> => send('DELETE', path, undefined, token.value);

async function send<T>(method: string, path: string, body: object | undefined, as: string): Promise<T> {
  const headers: Record<string, string> = { Authorization: `Bearer ${as}` };
  if (body) {
    headers['Content-Type'] = 'application/json';
    // Sets an idempotency key, so that the call takes effect only once even if the browser repeats it. Does not use
    // `randomUUID`, which browsers lack on plain HTTP.
    headers['Idempotency-Key'] = [...crypto.getRandomValues(new Uint32Array(4))].join('-');
  }
  const answer = await fetch(`/api/admin/${path}`, {
    method,
    headers,
    body: body && JSON.stringify(body),
    cache: 'no-store',
    credentials: 'omit',
    signal: AbortSignal.timeout(answer_ms_max),
  });
  const reply = (await answer.json().catch(() => ({}))) as AnswerBody<T>;
  if (answer.ok && reply.ok) return reply.result as T;
  if (answer.status === 401 && as === token.value && as !== '') {
    refusal.set('The token is no longer accepted.');
    keepToken('');
  }
  throw new CallFailure(answer.status, reply.description ?? answer.statusText);
}

export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
