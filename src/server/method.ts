/** A bot method is a value: routing, parsing, and documents read the same object. */
import type { z } from 'zod';
import { ApiError, catalogue, type ErrorName } from '../errors.js';
import type { Files } from '../files/files.js';
import type { Bot } from '../store/core/control.js';
import type { Store } from '../store/store.js';
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

export interface Method {
  readonly name: string;
  readonly summary: string;
  /** null for a method that takes none and answers from memory */
  readonly params: z.ZodType | null;
  /** Answers of the catalogue that belong to this method, besides those that every method can give. */
  readonly errors: readonly ErrorName[];
  /** What the envelope carries; of `results.ts`. */
  readonly result?: z.ZodType;
  readonly handler: (context: MethodContext, params: never) => unknown;
}

/** Whether a call may change anything: by the custom of bot interfaces, what only tells is called get… */
export const changesState = (method: Method): boolean => !method.name.startsWith('get');

/** Whether a call makes messages or larger ones: these are refused first while Redis is full. */
export const growsState = (method: Method): boolean =>
  /^(send|copy|forward|edit|pin|create)/.test(method.name);

const settingsMethods = new WeakMap<Method, boolean>();

/** Whether a call commits a change of the bot's own settings or memberships in Postgres. */
export function changesSettings(method: Method): boolean {
  let known = settingsMethods.get(method);
  if (known === undefined) {
    known = /^(setMy|deleteMy|setWebhook|deleteWebhook|leave)/.test(method.name);
    settingsMethods.set(method, known);
  }
  return known;
}

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

export function defineMethod<P extends z.ZodType | null>(method: {
  readonly name: string;
  readonly summary: string;
  readonly params: P;
  readonly errors?: readonly ErrorName[];
  readonly result?: z.ZodType;
  readonly handler: (context: MethodContext, params: P extends z.ZodType ? z.output<P> : null) => unknown;
}): Method {
  return { errors: [], ...method } as Method;
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
