/** Defines a bot method as a value that routing, parsing and documentation read. */
import { z } from 'zod';
import { ApiError, catalogue, type ErrorName } from '../errors.js';
import type { Files } from '../files/files.js';
import type { Bot } from '../store/core/control.js';
import type { Store } from '../store/store.js';
import { chatId } from '../wire/schema.js';
import type { UploadedFile } from './params.js';

/** Checks webhook addresses. `delivery/` implements it. */
export interface Receivers {
  /**
   * Parses and checks a webhook URL. Errors: `webhook_url_invalid`, `webhook_url_not_https`, `webhook_port_refused`,
   * `webhook_address_reserved`, `webhook_host_unresolved`. Calls `count` before each name lookup, and rejects if
   * `count` does.
   */
  vet(
    url: string,
    count: () => Promise<void>,
  ): Promise<{ readonly target: { readonly url: string }; readonly address: string }>;
  /** Returns the PEM of an uploaded certificate. Errors: `certificate_too_big`, `certificate_invalid`. */
  readCertificate(given: Buffer): string;
}

export interface MethodContext {
  readonly bot: Bot;
  readonly store: Store;
  readonly files: Files;
  readonly receivers: Receivers;
  /** Uploaded files by the name of their form field. */
  readonly uploads: ReadonlyMap<string, UploadedFile>;
  /** Calls `listener` when the client disconnects. */
  readonly onGone: (listener: () => void) => void;
}

/**
 * What a method does to the state of the service:
 *
 * - `read` changes nothing.
 * - `change` changes or removes what is there.
 * - `grow` makes messages or makes them larger. These calls are refused first while Redis is full.
 * - `configure` commits settings or memberships of the bot in Postgres.
 */
export type Effect = 'read' | 'change' | 'grow' | 'configure';

interface Traits {
  readonly name: string;
  readonly effect: Effect;
  /** Counts as a poll, separately from other calls, so that a bot over its limit still gets its updates. */
  readonly polls?: true;
  /**
   * false: may not be called from the answer to a webhook delivery, where its result is lost or would end that
   * delivery.
   */
  readonly inAnswers?: false;
}

export interface Method extends Traits {
  /** Parameters that name a chat, in schema order. A change counts against the first chat. */
  readonly chatParams: readonly string[];
  readonly summary: string;
  /** Null for a method without parameters that answers from memory. */
  readonly params: z.ZodType | null;
  /** Errors specific to this method, besides those that every method can give. */
  readonly errors: readonly ErrorName[];
  /** Schema of `result` in the envelope, from `wire/results.ts`. */
  readonly result?: z.ZodType;
  readonly handler: (context: MethodContext, params: never) => unknown;
}

/** Whether a call may change state. */
export const changesState = ({ effect }: Method): boolean => effect !== 'read';

/** A result with its own `description` in the envelope, as webhook methods return. */
export class Described {
  readonly result: unknown;
  readonly description: string;

  constructor(result: unknown, description: string) {
    this.result = result;
    this.description = description;
  }
}

/** A result serialised once with its envelope, because it is returned again and again. */
export class Prepared {
  readonly envelope: string;

  constructor(result: unknown) {
    this.envelope = JSON.stringify({ ok: true, result });
  }
}

/** Names of the parameters whose schema is `chatId`. */
const chatParamsOf = (params: z.ZodType | null): string[] =>
  params instanceof z.ZodObject
    ? Object.entries(params.shape).flatMap(([name, schema]) => (schema === chatId ? [name] : []))
    : [];

interface Definition<P extends z.ZodType | null> extends Traits {
  readonly summary: string;
  readonly params: P;
  readonly errors?: readonly ErrorName[];
  readonly result?: z.ZodType;
  readonly handler: (context: MethodContext, params: P extends z.ZodType ? z.output<P> : null) => unknown;
}

export function defineMethod<P extends z.ZodType | null>(method: Definition<P>): Method {
  return { errors: [], ...method, chatParams: chatParamsOf(method.params) } as Method;
}

/** The first schema error as the error answer that clients know (behaviour §1). */
function refusal(error: z.ZodError): ApiError {
  const { path = [], message = '', input } = error.issues[0] ?? {};
  if (message.startsWith('!') && message.slice(1) in catalogue) {
    return new ApiError(message.slice(1) as ErrorName);
  }
  const name = path.join('.');
  if (input === undefined || input === '') return new ApiError('parameter_required', { name });
  return new ApiError('parameter_wrong', { name, what: message });
}

/** Returns the parsed parameters, or throws the `ApiError` for the first invalid one. */
export function parseWith<P extends z.ZodType>(schema: P, given: unknown): z.output<P> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  // Parsing with options takes zod ten times as long. Only a refusal needs the input that they report.
  throw refusal(schema.safeParse(given, { reportInput: true }).error ?? parsed.error);
}
