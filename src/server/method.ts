/** A bot method is a value: routing, parsing, and documents read the same object. */
import { z } from 'zod';
import { ApiError, catalogue, type ErrorName } from '../errors.js';
import type { Files } from '../files/files.js';
import type { Bot } from '../store/core/control.js';
import type { Store } from '../store/store.js';
import { chatId } from '../wire/schema.js';
import type { UploadedFile } from './params.js';

/** Where webhooks may lead; `delivery/` implements it. */
export interface Receivers {
  /**
   * Reads and vets a URL. Errors: `webhook_url_invalid`, `webhook_url_not_https`, `webhook_port_refused`, `webhook_address_reserved`,
   * `webhook_host_unresolved`.
   */
  vet(url: string): Promise<{ readonly target: { readonly url: string }; readonly address: string }>;
  /** The PEM of an uploaded certificate. Errors: `certificate_too_big`, `certificate_invalid`. */
  readCertificate(given: Buffer): string;
}

export interface MethodContext {
  readonly bot: Bot;
  readonly store: Store;
  readonly files: Files;
  readonly receivers: Receivers;
  /** Files that came with the call, by the name of the form field. */
  readonly uploads: ReadonlyMap<string, UploadedFile>;
  /** Calls `listener` when the client has gone. */
  readonly onGone: (listener: () => void) => void;
}

/**
 * What a method does to the state of the service:
 *
 * - `read` changes nothing.
 * - `change` changes or removes what is there.
 * - `grow` makes messages or makes them larger. Such calls are refused first while Redis is full.
 * - `configure` commits settings or memberships of the bot in Postgres.
 */
export type Effect = 'read' | 'change' | 'grow' | 'configure';

interface Traits {
  readonly name: string;
  readonly effect: Effect;
  /** Counts as a poll, apart from other calls: a bot over its rate still gets its updates. */
  readonly polls?: true;
  /** false: not run from the answer to a webhook delivery, where its result is lost or would end that delivery. */
  readonly inAnswers?: false;
}

export interface Method extends Traits {
  /** Parameters that name a chat, in the order of the schema. Calls that change something count for the first one. */
  readonly chatParams: readonly string[];
  readonly summary: string;
  /** null for a method that takes none and answers from memory */
  readonly params: z.ZodType | null;
  /** Answers of the catalogue that belong to this method, besides those that every method can give. */
  readonly errors: readonly ErrorName[];
  /** What the envelope carries; of `results.ts`. */
  readonly result?: z.ZodType;
  readonly handler: (context: MethodContext, params: never) => unknown;
}

/** Whether a call may change anything. */
export const changesState = ({ effect }: Method): boolean => effect !== 'read';

/** A result with a text of its own in the envelope, as webhook methods have it. */
export class Described {
  readonly result: unknown;
  readonly description: string;

  constructor(result: unknown, description: string) {
    this.result = result;
    this.description = description;
  }
}

/** A result that was made into text once because it is given again and again, with the envelope around it. */
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

/** The first thing a schema refused, as the answer that clients know (behaviour §1). */
function refusal(error: z.ZodError): ApiError {
  const { path = [], message = '', input } = error.issues[0] ?? {};
  if (message.startsWith('!') && message.slice(1) in catalogue) {
    return new ApiError(message.slice(1) as ErrorName);
  }
  const name = path.join('.');
  if (input === undefined || input === '') return new ApiError('parameter_required', { name });
  return new ApiError('parameter_wrong', { name, what: message });
}

/** Parses parameters or throws the answer that refuses them. */
export function parseWith<P extends z.ZodType>(schema: P, given: unknown): z.output<P> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  // With options zod takes ten times as long, and only a refusal needs what they tell.
  throw refusal(schema.safeParse(given, { reportInput: true }).error ?? parsed.error);
}
