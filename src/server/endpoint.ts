/** An endpoint of the application API is a value, as a method is. */
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

/** The one call whose body is signed: the server keeps the headers of its signature and takes larger bodies. */
export const leakReportPath = '/api/leaks/report';

/** Who may report leaked tokens; `leaks/` implements it. */
export interface LeakKeys {
  /** Whether these bytes were signed with the key of this id. Error: `unavailable` while no key can be had. */
  verify(body: Buffer, keyId: string, signature: string): Promise<boolean>;
}

/** A browser as it describes its subscription. */
export interface GivenSubscription {
  readonly endpoint: string;
  /** base64url */
  readonly p256dh: string;
  readonly auth: string;
}

/** Notifications to people without a window; `push/` implements it. */
export interface PushService {
  /** Under which browsers subscribe, base64url. */
  readonly publicKey: string;
  /** Error: `push_subscription_invalid` for keys that are none, and for addresses that may not be dialled. */
  read(given: GivenSubscription): Promise<SubscriptionKeys>;
}

export interface EndpointContext<U> {
  /** The caller; null for operators. */
  readonly user: U;
  readonly store: Store;
  readonly files: Files;
  /** Files that came with the call, by the name of the form field. */
  readonly uploads: ReadonlyMap<string, UploadedFile>;
  readonly downloads: Downloads;
  readonly request: ApiRequest;
  /** Calls `listener` once when the token of the call is no longer accepted, for what outlives it. Returns what ends that. */
  readonly onRevoked: (listener: () => void) => () => void;
  /** Null where reports of leaked tokens are not taken. */
  readonly leakKeys: LeakKeys | null;
  /** Null where nobody is notified. */
  readonly push: PushService | null;
  /** Null where nobody tells of the installation. */
  readonly operations: Operations | null;
}

/** Returned by a handler that has replied by itself. */
export const replied: unique symbol = Symbol('replied');

/** A body that is no `result` of an envelope: its fields stand beside `ok` (interface §2). */
export class Flat {
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(fields: Readonly<Record<string, unknown>>) {
    this.fields = fields;
  }
}

/** What an answer is made of: one of these. */
interface Answer {
  /** What the envelope carries; of `results.ts`. */
  readonly result?: z.ZodType;
  /** The whole body, where the interface has no envelope. */
  readonly body?: z.ZodType;
  /** Of an answer that is no JSON. */
  readonly contentType?: string;
  /** Each line of an answer that is lines of JSON. */
  readonly line?: z.ZodType;
}

export interface Endpoint extends Answer {
  readonly verb: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{name}` for a segment that is a parameter. */
  readonly path: string;
  /** `admin` asks for a token of an administrator; a `partner` signs the body, which the handler verifies. */
  readonly caller: 'user' | 'admin' | 'partner';
  readonly summary: string;
  readonly params: z.ZodType;
  /** The body is bytes of up to `limits.picture_bytes_max`, for the handler to read; parameters stand in path and query. */
  readonly rawBody?: true;
  /** The whole body, where it is more than parameters by name: the handler reads it. */
  readonly given?: z.ZodType;
  /** Changes nothing in the chat that it names, and so does not count there (behaviour §14). */
  readonly uncounted?: true;
  /** Of an administrator's call: the parameter of the body that the log names as its target. */
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
  readonly target?: string;
  readonly errors?: readonly ErrorName[];
  readonly handler: (context: EndpointContext<U>, params: z.output<P>) => unknown;
}

const unknownToPeople: Partial<Record<ErrorName, ErrorName>> = {
  chat_not_found: 'unknown_chat',
  message_to_edit_not_found: 'message_not_found',
  message_to_delete_not_found: 'message_not_found',
};

/** What a path names and is not there is 404 for people, while bots get the texts that their libraries know. */
export const kindForPeople = (kind: ErrorName): ErrorName => unknownToPeople[kind] ?? kind;

/** An endpoint for people, with their own token. */
export const defineEndpoint = <P extends z.ZodType>(definition: Definition<P, User>): Endpoint =>
  ({ errors: [], caller: 'user', ...definition }) as Endpoint;

/** An endpoint for operators. */
export const defineAdminEndpoint = <P extends z.ZodType>(definition: Definition<P, null>): Endpoint =>
  ({ errors: [], caller: 'admin', ...definition }) as Endpoint;

/** An endpoint for other services, which sign what they send. */
export const definePartnerEndpoint = <P extends z.ZodType>(definition: Definition<P, null>): Endpoint =>
  ({ errors: [], caller: 'partner', ...definition }) as Endpoint;
