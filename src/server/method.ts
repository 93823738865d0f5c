/** Defines a bot method as an object that the router, the parameter parser and the documentation use. */
import { z } from 'zod';
import { ApiError, catalogue, type ErrorName } from '../errors.js';
import type { Files } from '../files/files.js';
import type { Bot } from '../store/core/control.js';
import type { Store } from '../store/store.js';
import { done } from '../wire/results.js';
import { chatId } from '../wire/schema.js';
import type { UploadedFile } from './params.js';
import type { ApiRequest } from './request.js';

export interface Receivers {
  /**
   * Parses and checks a webhook URL. Calls `count` before each name lookup, and rejects if `count` rejects. Throws
   * `webhook_url_invalid`, `webhook_url_not_https`, `webhook_port_refused`, `webhook_address_reserved` or
   * `webhook_host_unresolved`.
   */
  vet(
    url: string,
    count: () => Promise<void>,
  ): Promise<{ readonly target: { readonly url: string }; readonly address: string }>;
  /** Returns a certificate as PEM. Throws `certificate_too_big` or `certificate_invalid`. */
  readCertificate(given: Buffer): string;
}

export interface MethodContext {
  readonly bot: Bot;
  readonly store: Store;
  readonly files: Files;
  readonly receivers: Receivers;
  readonly uploads: ReadonlyMap<string, UploadedFile>;
  readonly onGone: (listener: () => void) => void;
  /**
   * The call's request. Null if the call is in a receiver's answer to a delivery. Such a call cannot return a stream.
   */
  readonly request: ApiRequest | null;
}

/**
 * The effect of a method on the state of the service:
 *
 * - `read` changes nothing.
 * - `change` changes or removes existing data.
 * - `grow` makes messages or makes them larger. These calls are refused first while Redis is full.
 * - `configure` commits settings or memberships of the bot in Postgres.
 */
export type Effect = 'read' | 'change' | 'grow' | 'configure';

interface Traits {
  readonly name: string;
  readonly effect: Effect;
  /** True for polls. They are counted separately, so that a bot over its limit still gets its updates. */
  readonly polls?: true;
  /**
   * False if a receiver must not call this method in its answer to a delivery, because the result would be lost or the
   * call would end the delivery.
   */
  readonly inAnswers?: false;
  /** Whether the header `X-Service-Coalesce: 1` sets the parameter `coalesce`. */
  readonly coalesces?: true;
  /** Whether the headers `X-Service-Consumer` and `X-Service-Consumer-Timeout` set parameters. */
  readonly consumes?: true;
  /** The schema of each event. Only for a method that answers with server-sent events. */
  readonly events?: Readonly<Record<string, z.ZodType>>;
  /** Handles calls with `inline_message_id`. Absent if the method cannot change inline messages. */
  readonly ofInline?: OfInline;
}

/** A method's calls with `inline_message_id`. They name no chat and return `true`. */
export interface OfInline {
  readonly params: z.ZodType;
  readonly handler: (context: MethodContext, params: never) => Promise<true>;
}

export interface Method extends Traits {
  /**
   * The names of the parameters that name a chat, in the order of the schema. A change counts against the limit of the
   * chat that the first of them names.
   */
  readonly chatParams: readonly string[];
  readonly summary: string;
  /** The schema of the parameters. Null only for a method that has no parameters and answers from memory. */
  readonly params: z.ZodType | null;
  readonly errors: readonly ErrorName[];
  readonly result: z.ZodType;
  readonly handler: (context: MethodContext, params: never) => unknown;
}

export const changesState = ({ effect }: Method): boolean => effect !== 'read';

export class Described {
  readonly result: unknown;
  readonly description: string;

  constructor(result: unknown, description: string) {
    this.result = result;
    this.description = description;
  }
}

/** A result that many calls return. It is serialised only once, together with its envelope. */
export class Prepared {
  readonly envelope: string;

  constructor(result: unknown) {
    this.envelope = JSON.stringify({ ok: true, result });
  }
}

const chatParamsOf = (params: z.ZodType | null): string[] =>
  params instanceof z.ZodObject
    ? Object.entries(params.shape).flatMap(([name, schema]) => (schema === chatId ? [name] : []))
    : [];

type Handler<P, R> = (context: MethodContext, params: P extends z.ZodType ? z.output<P> : null) => R;

type Definition<P extends z.ZodType | null> = Traits & {
  readonly summary: string;
  readonly params: P;
  readonly errors?: readonly ErrorName[];
} & (
    | { readonly result: z.ZodType; readonly handler: Handler<P, unknown> }
    | { readonly events: NonNullable<Traits['events']>; readonly handler: Handler<P, unknown> }
    | { readonly result?: never; readonly handler: Handler<P, void | Promise<void>> }
  );

/** Defines a method. If no result schema is given, the method's result is `true`. */
export function defineMethod<P extends z.ZodType | null>(method: Definition<P>): Method {
  return { errors: [], result: done, ...method, chatParams: chatParamsOf(method.params) } as Method;
}

/** Converts a schema's error to the answer that clients expect (behaviour §1). */
function refusal(error: z.ZodError): ApiError {
  const { path = [], message = '', input } = error.issues[0] ?? {};
  if (message.startsWith('!') && message.slice(1) in catalogue) {
    return new ApiError(message.slice(1) as ErrorName);
  }
  const name = path.join('.');
  if (input === undefined || input === '') return new ApiError('parameter_required', { name });
  return new ApiError('parameter_wrong', { name, what: message });
}

export function parseWith<P extends z.ZodType>(schema: P, given: unknown): z.output<P> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  // Parses a refused call again with `reportInput`, because the error text depends on the refused value. Parsing with
  // `reportInput` takes ten times as long, so other calls are parsed without it.
  throw refusal(schema.safeParse(given, { reportInput: true }).error ?? parsed.error);
}
