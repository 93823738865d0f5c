/** Holds every successful answer that a test gets against the schema that the OpenAPI document shows of it. */
import type { z } from 'zod';
import { endpoints, methods } from '../../src/api/registry.js';
import { createRouter } from '../../src/api/router.js';

const find = createRouter(endpoints);

/** What was answered well so far: names of methods, and endpoints as `GET /api/me`. */
export const answered = new Set<string>();

function hold(name: string, schema: z.ZodType | undefined, value: unknown): void {
  answered.add(name);
  const parsed = schema?.safeParse(value);
  if (parsed && !parsed.success)
    throw new Error(
      `${name} answered what its schema does not know: ${parsed.error.message} ${JSON.stringify(value)}`,
    );
}

/** Throws when the answer of a bot method is not as described. */
export function holdMethod(name: string, body: { ok?: unknown; result?: unknown } | null): void {
  const method = methods.find((each) => each.name.toLowerCase() === name.toLowerCase());
  if (method && body?.ok === true) hold(method.name, method.result, body.result);
}

/** Throws when the answer of an endpoint is not as described; `path` may have a query. */
export function holdEndpoint(
  verb: string,
  path: string,
  body: { ok?: unknown; result?: unknown } | null,
): void {
  const match = find(verb, path.split('?')[0] ?? '');
  if (match === null || match === 'other_verb' || body?.ok !== true) return;
  const { endpoint } = match;
  const name = `${endpoint.verb} ${endpoint.path}`;
  if (endpoint.body) hold(name, endpoint.body, body);
  else hold(name, endpoint.result, body.result);
}
