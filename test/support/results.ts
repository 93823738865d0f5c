/** In a test, validates every successful answer and every received event against its schema in the OpenAPI document. */
import type { z } from 'zod';
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { methods } from '../../src/methods/methods.gen.js';
import { createRouter } from '../../src/server/router.js';

const find = createRouter(endpoints);

/**
 * The calls that were answered successfully so far. Each entry is the name of a method, or an endpoint such as `GET
 * /api/me`.
 */
export const answered = new Set<string>();

let listener: ((method: string, result: unknown) => void) | undefined;

/** From now on, calls `take` with each successful answer of a method. Without an argument, stops these calls. */
export function onMethodAnswer(take?: (method: string, result: unknown) => void): void {
  listener = take;
}

function hold(name: string, schema: z.ZodType | undefined, value: unknown): void {
  answered.add(name);
  const parsed = schema?.safeParse(value);
  if (parsed && !parsed.success)
    throw new Error(
      `${name} answered what its schema does not know: ${parsed.error.message} ${JSON.stringify(value)}`,
    );
}

interface Answer {
  readonly body: { readonly ok?: unknown; readonly result?: unknown } | null;
}

export function holdMethod<A extends Answer>(name: string, answer: A): A {
  const method = methods.find((each) => each.name.toLowerCase() === name.toLowerCase());
  if (method && !method.events && answer.body?.ok === true) {
    hold(method.name, method.result, answer.body.result);
    listener?.(method.name, answer.body.result);
  }
  return answer;
}

/** Returns the answer of an endpoint. Throws if the answer does not match its schema. `path` may have a query. */
export function holdEndpoint<A extends Answer>(verb: string, path: string, answer: A): A {
  const match = find(verb, path.split('?')[0] ?? '');
  const { body } = answer;
  if (match === null || match === 'other_verb' || (body?.ok !== true && !Array.isArray(body))) return answer;
  const { endpoint } = match;
  const name = `${endpoint.verb} ${endpoint.path}`;
  if (endpoint.body) hold(name, endpoint.body, body);
  else hold(name, endpoint.result, body.result);
  return answer;
}

/** Throws if an event of a stream does not match its schema. `path` may have a query. */
export function holdEvent(path: string, event: string, data: unknown): void {
  const match = find('GET', path.split('?')[0] ?? '');
  const events = match === null || match === 'other_verb' ? undefined : match.endpoint.events;
  const schema = events?.[event];
  if (!schema) throw new Error(`${path} sent an event that the document does not have: ${event}`);
  hold(`${path} ${event}`, schema, data);
}
