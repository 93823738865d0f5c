/** Defines what a check of a server is, and the functions with which checks compare answers. */
import { ApiError, type ErrorDetail, type ErrorName } from '../errors.js';
import { methods } from '../methods/methods.gen.js';
import { type Answer, type CallOptions, type Client, Failed } from './client.js';
import type { Given } from './encodings.js';

// biome-ignore lint/suspicious/noExplicitAny: checks inspect results of every shape
export type Result = any;

/** The requirements that a check may have, each with the reason that the report gives when the check is skipped. */
export const needs = {
  chat: 'no --chat given',
  direct: 'no --chat with a person given',
  group: 'no --group given',
  second: 'no --second-token given',
  channel: 'no --channel given',
  webhook: 'no --webhook given',
  polling: 'the bot has a webhook, which this check would delete',
} as const;
export type Need = keyof typeof needs;

export interface Places {
  /** The id of a chat in which the bot may send and pin. */
  readonly chat: number;
  readonly group: number;
  readonly channel: number;
  readonly webhook: string;
  /** A second bot, which is an ordinary member of the group. */
  readonly second: { readonly id: number; readonly token: string };
}

export interface Session extends Places {
  readonly client: Client;
  readonly me: { readonly id: number; readonly first_name: string };
  call(method: string, params?: Given, options?: CallOptions): Promise<Answer>;
  /** Makes a call and returns its result. Throws if the call fails or the result does not match the method's schema. */
  result(method: string, params?: Given, options?: CallOptions): Promise<Result>;
  /** Sends a text message and returns its id. */
  send(text?: string, more?: Given): Promise<number>;
  /** Makes a call that must fail with exactly this error of the catalogue. */
  refused(
    method: string,
    params: Given,
    kind: ErrorName,
    detail?: ErrorDetail,
    options?: CallOptions,
  ): Promise<void>;
}

export interface Check {
  /** The heading under which the report lists the check. */
  readonly subject: string;
  /** The statement that the check proves about the server. */
  readonly proves: string;
  readonly needs: readonly Need[];
  /** True for a check that changes nothing. Such checks run concurrently. */
  readonly beside?: true;
  run(session: Session): Promise<void>;
}

export const show = (value: unknown): string => JSON.stringify(value) ?? String(value);

type Test = (value: unknown) => boolean;

/**
 * Compares a value with the parts it should have. Returns a description of the first difference, or null if there is
 * none. A function in `expected` tests the corresponding part.
 */
function difference(value: unknown, expected: unknown, path: string): string | null {
  if (typeof expected === 'function')
    return (expected as Test)(value) ? null : `${path} is wrong: ${show(value)}`;
  if (typeof expected !== 'object' || expected === null)
    return value === expected ? null : `${path} is ${show(value)} instead of ${show(expected)}`;
  if (typeof value !== 'object' || value === null)
    return `${path} is ${show(value)} instead of ${show(expected)}`;
  if (Array.isArray(expected) && (!Array.isArray(value) || value.length !== expected.length))
    return `${path} is ${show(value)} instead of ${show(expected)}`;
  for (const [name, inner] of Object.entries(expected)) {
    const found = difference((value as Record<string, unknown>)[name], inner, `${path}.${name}`);
    if (found !== null) return found;
  }
  return null;
}

/** Throws unless the value has everything in `expected`. Additional fields are allowed. */
export function expectLike(value: unknown, expected: unknown, what: string): void {
  const found = difference(value, expected, what);
  if (found !== null) throw new Failed(found);
}

export function expectTrue(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Failed(what);
}

/** Returns the response body that the interface prescribes for an error. */
export function refusalOf({ code, message, retryAfter }: ApiError): object {
  const parameters = retryAfter === undefined ? {} : { parameters: { retry_after: retryAfter } };
  return { ok: false, error_code: code, description: message, ...parameters };
}

/** Throws unless the answer is exactly the given refusal. */
export function expectRefusal({ status, headers, body }: Answer, error: ApiError, what: string): void {
  const expected = refusalOf(error);
  const isSame =
    body !== null && typeof body === 'object' && Object.keys(body).length === Object.keys(expected).length;
  if (!isSame || difference(body, expected, '') !== null || status !== error.code)
    throw new Failed(`${what} answered ${status} ${show(body)} instead of ${error.code} ${show(expected)}`);
  if (error.retryAfter !== undefined && headers.get('retry-after') !== String(error.retryAfter))
    throw new Failed(`${what} answered without the header Retry-After`);
  const type = headers.get('content-type') ?? '';
  expectTrue(/^application\/json\b/.test(type), `${what} answered with the content type ${type}`);
}

const schemas = new Map(methods.map(({ name, result }) => [name, result]));

/**
 * Returns the result of a successful answer. Throws for any other answer, or if the result does not match the method's
 * schema.
 */
function resultIn(method: string, params: Given, { status, body }: Answer): Result {
  const what = `${method} ${show(params)}`;
  if (status !== 200 || body?.ok !== true) throw new Failed(`${what} answered ${status} ${show(body)}`);
  const parsed = schemas.get(method)?.safeParse(body.result);
  const issue = parsed?.error?.issues[0];
  if (issue)
    throw new Failed(
      `${what} answered a wrong result: ${issue.path.join('.') || 'it'}: ${issue.message}: ${show(body.result)}`,
    );
  return body.result;
}

/** The messages that the run sent: message ids by chat id. */
export type Sent = Map<number, Set<number>>;

/** Adds the messages in a result to `sent`. */
function note(sent: Sent, { chat_id }: Given, result: Result): void {
  for (const { message_id, chat } of Array.isArray(result) ? result : [result]) {
    const id = chat?.id ?? chat_id;
    if (typeof message_id === 'number' && typeof id === 'number')
      sent.set(id, (sent.get(id) ?? new Set()).add(message_id));
  }
}

/** Creates the functions with which checks make calls. These functions add each sent message to `sent`. */
export function createSession(client: Client, me: Session['me'], places: Places, sent: Sent): Session {
  const result: Session['result'] = async (method, params = {}, options = {}) => {
    const found = resultIn(method, params, await client.call(method, params, options));
    if (/^(send|copy|forward|create)/.test(method)) note(sent, params, found);
    return found;
  };
  return {
    ...places,
    client,
    me,
    call: client.call,
    result,
    send: async (text = 'petrel conformance', more = {}) =>
      (await result('sendMessage', { chat_id: places.chat, text, ...more })).message_id,
    async refused(method, params, kind, detail = {}, options = {}) {
      const answer = await client.call(method, params, options);
      expectRefusal(answer, new ApiError(kind, detail), `${method} ${show(params)}`);
    },
  };
}
