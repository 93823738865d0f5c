/** Defines an endpoint of the application API as a value, like a method. */
import type { z } from 'zod';
import type { ErrorName } from '../errors.js';
import type { Files } from '../files/files.js';
import type { SubscriptionKeys } from '../store/chats/push.js';
import type { User } from '../store/core/control.js';
import type { Store } from '../store/store.js';
import type { Operations } from '../wire/operations_results.js';
import type { Downloads } from './downloads.js';
import type { UploadedFile } from './params.js';
import type { ApiRequest } from './request.js';

/** The only path with signed bodies. The server keeps the signature headers there and accepts larger bodies. */
export const leakReportPath = '/api/leaks/report';

/** Verifies reports of leaked tokens. `leaks/` implements it. */
export interface LeakKeys {
  /** Whether the key of this id signed these bytes. Error: `unavailable` when the keys cannot be loaded. */
  verify(body: Buffer, keyId: string, signature: string): Promise<boolean>;
}

/** A push subscription as the browser describes it. */
export interface GivenSubscription {
  readonly endpoint: string;
  /** base64url */
  readonly p256dh: string;
  readonly auth: string;
}

/** Push notifications for people without an open window. `push/` implements it. */
export interface PushService {
  /** The public key under which browsers subscribe, base64url. */
  readonly publicKey: string;
  /**
   * Error: `push_subscription_invalid` for invalid keys, and for addresses that may not be contacted. Calls `count`
   * before each name lookup, and rejects if `count` does.
   */
  read(given: GivenSubscription, count: () => Promise<void>): Promise<SubscriptionKeys>;
}

export interface EndpointContext<U> {
  /** The caller; null for administrators and partners. */
  readonly user: U;
  readonly store: Store;
  readonly files: Files;
  /** Uploaded files by the name of their form field. */
  readonly uploads: ReadonlyMap<string, UploadedFile>;
  readonly downloads: Downloads;
  readonly request: ApiRequest;
  /**
   * Calls `listener` once when the token of the call is no longer accepted. For replies that outlive the call, such as
   * streams. Returns a function that stops watching.
   */
  readonly onRevoked: (listener: () => void) => () => void;
  /** Null when reports of leaked tokens are off. */
  readonly leakKeys: LeakKeys | null;
  /** Null when push notifications are off. */
  readonly push: PushService | null;
  /** Null when there is no operations data. */
  readonly operations: Operations | null;
}

/** A handler returns this after it has sent the reply itself. */
export const replied: unique symbol = Symbol('replied');

/** A body without `result`: its fields stand beside `ok` (interface §2). */
export class Flat {
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(fields: Readonly<Record<string, unknown>>) {
    this.fields = fields;
  }
}

/** The schema of an answer. Exactly one of these fields is set. */
interface Answer {
  /** Schema of `result` in the envelope, from `wire/results.ts`. */
  readonly result?: z.ZodType;
  /** Schema of the whole body, for answers without an envelope. */
  readonly body?: z.ZodType;
  /** Content type of an answer that is not JSON. */
  readonly contentType?: string;
  /** Schema of each line of an answer in JSON lines. */
  readonly line?: z.ZodType;
}

export interface Endpoint extends Answer {
  readonly verb: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{name}` for each path parameter. */
  readonly path: string;
  /** `admin` requires an administrator's token. A `partner` signs the body, and the handler verifies the signature. */
  readonly caller: 'user' | 'admin' | 'partner';
  readonly summary: string;
  readonly params: z.ZodType;
  /**
   * The body is up to `limits.picture_bytes_max` raw bytes that the handler reads. Parameters come from path and query.
   */
  readonly rawBody?: true;
  /** Schema of the whole body, when it is more than named parameters. The handler reads it. */
  readonly given?: z.ZodType;
  /** Changes nothing in the chat it names, so the call does not count against the chat's limit (behaviour §14). */
  readonly uncounted?: true;
  /** Changes Redis only, so the call need not wait for other changes by the same person. */
  readonly inRedis?: true;
  /** The body parameter that the administrators' log shows as the target of the call. */
  readonly target?: string;
  readonly errors: readonly ErrorName[];
  readonly handler: (context: EndpointContext<never>, params: never) => unknown;
}

interface Definition<P extends z.ZodType, U> extends Answer {
  readonly verb: Endpoint['verb'];
  readonly path: string;
  readonly summary: string;
  readonly params: P;
  readonly rawBody?: true;
  readonly given?: z.ZodType;
  readonly uncounted?: true;
  readonly inRedis?: true;
  readonly target?: string;
  readonly errors?: readonly ErrorName[];
  readonly handler: (context: EndpointContext<U>, params: z.output<P>) => unknown;
}

const unknownToPeople: Partial<Record<ErrorName, ErrorName>> = {
  chat_not_found: 'unknown_chat',
  message_to_edit_not_found: 'message_not_found',
  message_to_delete_not_found: 'message_not_found',
};

/**
 * Maps errors for people: what their path names and is missing is a 404. Bots get the texts that their libraries know.
 */
export const kindForPeople = (kind: ErrorName): ErrorName => unknownToPeople[kind] ?? kind;

/** Defines an endpoint for people, who use their own token. */
export const defineEndpoint = <P extends z.ZodType>(definition: Definition<P, User>): Endpoint =>
  ({ errors: [], caller: 'user', ...definition }) as Endpoint;

/** Defines an endpoint for administrators. */
export const defineAdminEndpoint = <P extends z.ZodType>(definition: Definition<P, null>): Endpoint =>
  ({ errors: [], caller: 'admin', ...definition }) as Endpoint;

/** Defines an endpoint for other services, which sign their requests. */
export const definePartnerEndpoint = <P extends z.ZodType>(definition: Definition<P, null>): Endpoint =>
  ({ errors: [], caller: 'partner', ...definition }) as Endpoint;
