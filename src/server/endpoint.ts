/** Defines an endpoint of the application API as an object, as `method.ts` defines a bot method. */
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
 * The only path whose requests have signed bodies. On this path, the server keeps the signature headers and accepts
 * larger bodies.
 */
export const leakReportPath = '/api/leaks/report';

export interface LeakKeys {
  /** Returns whether the signature is valid. Throws `unavailable` if the keys cannot be loaded. */
  verify(body: Buffer, keyId: string, signature: string): Promise<boolean>;
}

export interface GivenSubscription {
  readonly endpoint: string;
  /** base64url. */
  readonly p256dh: string;
  readonly auth: string;
}

/** Push notifications for people without an open browser window. Implemented in `push/`. */
export interface PushService {
  /** The public key with which browsers subscribe, as base64url. */
  readonly publicKey: string;
  /**
   * Checks a subscription. Calls `count` before each name lookup, and rejects if `count` rejects. Throws
   * `push_subscription_invalid` for invalid keys and for addresses that may not be contacted.
   */
  read(given: GivenSubscription, count: () => Promise<void>): Promise<SubscriptionKeys>;
}

/** A post as shown to readers without an account. */
export interface PublicPost {
  /** The title of the channel. */
  readonly title: string;
  /** Unix time in seconds. */
  readonly date: number;
  /** The emoji and title that represent the content, or '' if the content is a text. */
  readonly sign: string;
  /** The text or caption, without spoilers. */
  readonly text: string;
  /** The URL of a picture that can be loaded without an account. */
  readonly picture?: string | undefined;
  readonly reactions: ReadonlyArray<{ readonly emoji: string; readonly count: number }>;
}

export interface PostPages {
  /** Returns a post of a public channel. Throws `post_not_found`. */
  readonly find: (externalId: string) => Promise<PublicPost>;
  /** Sends a post's page, or the page that says that there is no such post. `externalId` is '' for a malformed id. */
  readonly show: (request: ApiRequest, externalId: string, post: PublicPost | null) => Promise<void>;
  /** Sends a page for a temporary error. The reader can try again later. */
  readonly refuse: (request: ApiRequest, error: ApiError) => void;
}

export interface Operations {
  /**
   * Returns the state of the installation. Queries the databases and Redis at most once a second, however many clients
   * ask.
   */
  overview(): Promise<Overview>;
  /**
   * Returns the figures of a range, or only the points that begin after `afterMs`. Throws `no_prometheus` or
   * `unavailable`.
   */
  history(range: HistoryRange, afterMs: number): Promise<History>;
  /**
   * Returns bots ranked by `order`, at most `limits.bots_ranked_max`. If `bot` is given, returns only the bot with this
   * id.
   */
  bots(ask: { readonly order: Ranking; readonly limit: number; readonly bot?: number }): Promise<RankedBot[]>;
}

/** Test requests to webhooks. Implemented in `delivery/`. */
export interface Pings {
  /**
   * Sends one signed request to the webhook and returns the request and the answer. Takes at most
   * `limits.webhook_ping_ms_max`. Calls `count` before anything is sent, and rejects if `count` rejects. Throws
   * `deliveries_paused` if the bot is suspended, if its token is blocked, or during a drill. Throws `too_many_requests`
   * while another ping of the bot, or too many pings of this process, are in flight.
   */
  send(bot: Bot, webhook: Webhook, count: () => Promise<void>): Promise<Ping>;
}

/** Previews of linked pages. Implemented in `previews/`. */
export interface LinkPreviews {
  /**
   * Returns the preview of the page at an HTTPS URL, or null if it has none. Takes some seconds if the page is not
   * cached. Throws `too_many_requests`.
   */
  find(user: number, url: string): Promise<LinkPreview | null>;
}

/**
 * A sign-in that has been started. The browser opens `url`, and later sends `record` together with the provider's
 * answer.
 */
export interface StartedSignIn {
  readonly url: string;
  /** Encrypted. */
  readonly record: string;
}

/**
 * Counts a sign-up. Returns a function that undoes the count, or undefined if there are no limits. Throws
 * `too_many_requests`.
 */
export type CountSignUp = () => Promise<(() => Promise<void>) | undefined>;

/** Sign-in through an OpenID Connect provider. Implemented in `identity/`. */
export interface SignInProvider {
  /** The provider's name as people see it. */
  readonly name: string;
  /** Throws `identity_provider_unavailable`. */
  begin(): Promise<StartedSignIn>;
  /**
   * Returns the id of the person. `answer` is the query with which the provider sent the browser back. Creates a person
   * for an unknown subject if the settings allow it, after a call of `count`, which may reject. If another sign-in has
   * just created the person, calls the function that `count` returned. Throws `sign_in_expired`, `sign_in_refused`,
   * `account_missing`, `identity_provider_unavailable` or `too_many_requests`.
   */
  finish(record: string, answer: string, count: CountSignUp): Promise<number>;
}

/** How people without a token can get one. */
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
  /** The client address against which the call counts. '' unless the endpoint's caller is `anyone`. */
  readonly address: string;
  /**
   * Calls `listener` once when the call's token is no longer accepted, so that a long reply, such as a stream, can end.
   * Returns a function that stops watching the token.
   */
  readonly onRevoked: (listener: () => void) => () => void;
  readonly leakKeys: LeakKeys | null;
  readonly push: PushService | null;
  readonly operations: Operations | null;
  readonly pings: Pings | null;
  /** Null without the setting LINK_PREVIEWS. */
  readonly linkPreviews: LinkPreviews | null;
  readonly signIn: SignIn;
  /** The setting SUGGESTED_CHATS. */
  readonly suggested: readonly string[];
}

/** Returned by a handler that has sent the reply itself. */
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
   * Who may call the endpoint. `user` requires a person's token, and `admin` an administrator's token. A `partner`
   * signs the body, and the handler verifies the signature. `anyone` needs no token, but must send JSON, which web
   * pages of other origins cannot send.
   */
  readonly caller: 'user' | 'admin' | 'partner' | 'anyone';
  readonly summary: string;
  readonly params: z.ZodType;
  /**
   * True if the body is raw bytes that the handler parses, up to `limits.picture_bytes_max`. Parameters then come from
   * the path and the query.
   */
  readonly rawBody?: true;
  /** The schema of the body, if the body is more than a set of named parameters. The handler parses such a body. */
  readonly given?: z.ZodType;
  /**
   * True if the call names a chat but changes nothing in the chat. Such a call does not count against the chat's limit
   * (behaviour §14).
   */
  readonly uncounted?: true;
  /** True if the call changes only data in Redis. Such a call need not wait for the same person's other changes. */
  readonly inRedis?: true;
  /** The body parameter that the log of administrators' calls shows as the target. */
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

/** Defines an endpoint. If no result schema is given, the endpoint's result is `true`. */
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
 * Returns the error that the application API uses for `kind`: a 404 if `kind` means that something in the path does not
 * exist, otherwise `kind`. The Bot API always uses `kind`, because libraries recognise its text.
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
