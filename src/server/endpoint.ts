/** Defines an endpoint of the application API as a value, like a method. */
import type { z } from 'zod';
import type { ApiError, ErrorName } from '../errors.js';
import type { Files } from '../files/files.js';
import type { SubscriptionKeys } from '../store/chats/push.js';
import type { Bot, User } from '../store/core/control.js';
import type { LinkPreview } from '../store/messages/link_previews.js';
import type { Store } from '../store/store.js';
import type { Webhook } from '../store/webhooks/webhooks.js';
import type { History, HistoryRange, Overview, RankedBot, Ranking } from '../wire/admin_results.js';
import { done } from '../wire/results.js';
import type { Ping } from '../wire/webhook_results.js';
import type { Downloads } from './downloads.js';
import type { UploadedFile } from './params.js';
import type { ApiRequest } from './request.js';

/**
 * The only path with signed bodies. For this path, the server keeps the signature headers and accepts larger bodies.
 */
export const leakReportPath = '/api/leaks/report';

export interface LeakKeys {
  /** Returns whether the signature is valid. Error: `unavailable` if the keys cannot be loaded. */
  verify(body: Buffer, keyId: string, signature: string): Promise<boolean>;
}

export interface GivenSubscription {
  readonly endpoint: string;
  /** base64url. */
  readonly p256dh: string;
  readonly auth: string;
}

/** Serves push notifications for people without an open browser window. `push/` implements this interface. */
export interface PushService {
  /** The public key with which browsers subscribe, as base64url. */
  readonly publicKey: string;
  /**
   * Checks a subscription. Error: `push_subscription_invalid` for invalid keys, and for addresses that may not be
   * contacted. Calls `count` before each name lookup, and rejects if `count` rejects.
   */
  read(given: GivenSubscription, count: () => Promise<void>): Promise<SubscriptionKeys>;
}

/** A post as readers without an account see it. */
export interface PublicPost {
  /** The title of the channel. */
  readonly title: string;
  /** Unix time in seconds. */
  readonly date: number;
  /** The emoji and the title that represent the content, or '' for a text message. */
  readonly sign: string;
  /** The text or caption, without spoilers. */
  readonly text: string;
  /** The address of a picture that can be loaded without an account. */
  readonly picture?: string | undefined;
  readonly reactions: ReadonlyArray<{ readonly emoji: string; readonly count: number }>;
}

export interface PostPages {
  /** Returns a post of a public channel. Error: `post_not_found`. */
  readonly find: (externalId: string) => Promise<PublicPost>;
  /** Sends the page of a post, or the page of a missing post. `externalId` is '' for a malformed id. */
  readonly show: (request: ApiRequest, externalId: string, post: PublicPost | null) => Promise<void>;
  /** Sends a page for a temporary error, after which the reader can try again. */
  readonly refuse: (request: ApiRequest, error: ApiError) => void;
}

export interface Operations {
  /** Returns the state of the installation. Asks the stores at most once a second, even if many clients ask. */
  overview(): Promise<Overview>;
  /**
   * Returns the figures of a range, or only the points that begin after `afterMs`. Errors: `no_prometheus`,
   * `unavailable`.
   */
  history(range: HistoryRange, afterMs: number): Promise<History>;
  /** Returns up to limits.bots_ranked_max bots, ranked by `order`. With `bot`, returns only the bot with this id. */
  bots(ask: { readonly order: Ranking; readonly limit: number; readonly bot?: number }): Promise<RankedBot[]>;
}

/** Sends test requests to webhooks. `delivery/` implements this interface. */
export interface Pings {
  /**
   * Sends one signed request to the webhook, and returns the exchange. Takes at most limits.webhook_ping_ms_max. Calls
   * `count` before anything is sent, and rejects if `count` rejects. Errors: `deliveries_paused` if the bot is suspended,
   * its token is blocked, or during a drill; `too_many_requests` if a ping of the bot, or too many pings of this process,
   * are in flight.
   */
  send(bot: Bot, webhook: Webhook, count: () => Promise<void>): Promise<Ping>;
}

/** Finds the previews of pages. `previews/` implements this interface. */
export interface LinkPreviews {
  /**
   * Returns the preview of the page at an HTTPS URL, or null if the page has no preview. Takes some seconds if the page
   * is not in the cache. Error: `too_many_requests`.
   */
  find(user: number, url: string): Promise<LinkPreview | null>;
}

/** A started sign-in. The browser goes to `url`, and gives back `record` with the answer of the provider. */
export interface StartedSignIn {
  readonly url: string;
  /** Encrypted. */
  readonly record: string;
}

/**
 * Counts a sign-up. Returns a function that removes the sign-up from the count, or undefined if there are no limits.
 * Error: `too_many_requests`.
 */
export type CountSignUp = () => Promise<(() => Promise<void>) | undefined>;

/** Signs people in through an OpenID Connect provider. `identity/` implements this interface. */
export interface SignInProvider {
  /** The name of the provider, as people see it. */
  readonly name: string;
  /** Error: `identity_provider_unavailable`. */
  begin(): Promise<StartedSignIn>;
  /**
   * Returns the id of the person. `answer` is the query with which the provider sent the browser back. Creates a person
   * for an unknown subject if the settings allow it. First calls `count`, which may reject. If another sign-in has just
   * created the person, calls the function that `count` returned. Errors: `sign_in_expired`, `sign_in_refused`,
   * `account_missing`, `identity_provider_unavailable`, `too_many_requests`.
   */
  finish(record: string, answer: string, count: CountSignUp): Promise<number>;
}

/** The ways in which people without a token can get one. */
export interface SignIn {
  /** Whether anyone may sign up. */
  readonly isOpen: boolean;
  readonly provider: SignInProvider | null;
  /** Whether browsers reach the service only over HTTPS. Cookies then have the attribute `Secure`. */
  readonly isSecure: boolean;
}

export interface EndpointContext<U> {
  readonly user: U;
  readonly store: Store;
  readonly files: Files;
  readonly uploads: ReadonlyMap<string, UploadedFile>;
  readonly downloads: Downloads;
  readonly request: ApiRequest;
  /** The client address to which limits apply. '' unless the caller is `anyone`. */
  readonly address: string;
  /**
   * Calls `listener` once when the token of the call is no longer accepted. Needed by replies that outlive the call,
   * such as streams. Returns a function that stops watching.
   */
  readonly onRevoked: (listener: () => void) => () => void;
  readonly leakKeys: LeakKeys | null;
  readonly push: PushService | null;
  readonly operations: Operations | null;
  readonly pings: Pings | null;
  /** Null if the setting LINK_PREVIEWS is off. */
  readonly linkPreviews: LinkPreviews | null;
  readonly signIn: SignIn;
  /** The setting SUGGESTED_CHATS. */
  readonly suggested: readonly string[];
}

/** A handler returns this if it has sent the reply itself. */
export const replied: unique symbol = Symbol('replied');

export class Flat {
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(fields: Readonly<Record<string, unknown>>) {
    this.fields = fields;
  }
}

interface Answer {
  readonly result?: z.ZodType;
  readonly body?: z.ZodType;
  readonly contentType?: string;
  readonly events?: Readonly<Record<string, z.ZodType>>;
  readonly line?: z.ZodType;
}

export interface Endpoint extends Answer {
  readonly verb: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /**
   * Who may call the endpoint. `admin` requires an administrator's token. A `partner` signs the body, and the handler
   * verifies the signature. `anyone` needs no token. The body of a call by `anyone` must be JSON, because pages of
   * other origins cannot send JSON.
   */
  readonly caller: 'user' | 'admin' | 'partner' | 'anyone';
  readonly summary: string;
  readonly params: z.ZodType;
  /**
   * True if the body is up to `limits.picture_bytes_max` raw bytes that the handler parses. Parameters then come from
   * the path and the query.
   */
  readonly rawBody?: true;
  /** The schema of a body that is more than a set of named parameters. The handler parses such a body. */
  readonly given?: z.ZodType;
  /**
   * True if the call changes nothing in its chat. Such a call does not count against the chat's limit (behaviour §14).
   */
  readonly uncounted?: true;
  /** True if the call changes only Redis. Such a call does not wait for other changes by the same person. */
  readonly inRedis?: true;
  /** The body parameter that the administrators' log shows as the target of the call. */
  readonly target?: string;
  readonly errors: readonly ErrorName[];
  readonly handler: (context: EndpointContext<never>, params: never) => unknown;
}

type Handler<P extends z.ZodType, U, R> = (context: EndpointContext<U>, params: z.output<P>) => R;

type Definition<P extends z.ZodType, U> = Omit<
  Endpoint,
  'caller' | 'params' | 'errors' | 'handler' | keyof Answer
> & {
  readonly params: P;
  readonly errors?: Endpoint['errors'];
} & (
    | (Answer & { readonly handler: Handler<P, U, unknown> } & (
          | Required<Pick<Answer, 'result'>>
          | Required<Pick<Answer, 'body'>>
          | Required<Pick<Answer, 'contentType'>>
        ))
    | ({ readonly [name in keyof Answer]?: never } & {
        readonly handler: Handler<P, U, void | Promise<void>>;
      })
  );

/** Defines an endpoint. If there is no schema of an answer, the result is `true`. */
const define = <P extends z.ZodType, U>(caller: Endpoint['caller'], definition: Definition<P, U>) => {
  const { result, body, contentType } = definition;
  const answer = result ?? body ?? contentType;
  return { errors: [], caller, ...definition, ...(answer === undefined && { result: done }) } as Endpoint;
};

const unknownToPeople: Partial<Record<ErrorName, ErrorName>> = {
  chat_not_found: 'unknown_chat',
  message_to_edit_not_found: 'message_not_found',
  message_to_delete_not_found: 'message_not_found',
};

/**
 * Converts an error for people to 404 if the path names something that does not exist. Bots still get the error texts
 * that their libraries recognise.
 */
export const kindForPeople = (kind: ErrorName): ErrorName => unknownToPeople[kind] ?? kind;

export const defineEndpoint = <P extends z.ZodType>(definition: Definition<P, User>) =>
  define('user', definition);

export const defineAdminEndpoint = <P extends z.ZodType>(definition: Definition<P, null>) =>
  define('admin', definition);

export const definePartnerEndpoint = <P extends z.ZodType>(definition: Definition<P, null>) =>
  define('partner', definition);

export const defineOpenEndpoint = <P extends z.ZodType>(definition: Definition<P, null>) =>
  define('anyone', definition);
