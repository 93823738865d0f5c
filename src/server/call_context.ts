/** Defines what every call to a front gets as its context, and the form of replies. */

import { ApiError, errorEnvelope } from '../errors.js';
import type { Files } from '../files/files.js';
import type { Store } from '../store/store.js';
import type { Callers, TokenProvider } from './callers.js';
import type { AdminClients } from './client_address.js';
import type { Downloads } from './downloads.js';
import {
  type Endpoint,
  Flat,
  type LeakKeys,
  type LinkPreviews,
  type Operations,
  type Pings,
  type PostPages,
  type PushService,
  replied,
  type SignIn,
} from './endpoint.js';
import type { Outcome } from './idempotency.js';
import { Described, type Method, Prepared, type Receivers } from './method.js';
import type { UploadedFile } from './params.js';
import type { ApiRequest } from './request.js';
import type { FindEndpoint } from './router.js';
import type { Shares } from './shares.js';

export interface DispatchOptions {
  readonly methods: readonly Method[];
  readonly endpoints: readonly Endpoint[];
  readonly store: Store;
  readonly files: Files;
  readonly receivers: Receivers;
  /** The setting ADMIN_TOKEN. It is valid in addition to the tokens of named administrators. */
  readonly adminToken: string | undefined;
  /** The setting DURABLE, false by default. */
  readonly durable?: boolean;
  /** The setting ADMIN_ALLOW_CIDRS. An empty list allows any address. */
  readonly adminCidrs?: readonly string[];
  readonly provider?: TokenProvider | undefined;
  readonly leakKeys?: LeakKeys | null;
  readonly push?: PushService | null;
  readonly operations?: Operations | null;
  readonly pings?: Pings | null;
  readonly linkPreviews?: LinkPreviews | null;
  /** The ways to sign in or sign up. If absent, people can get tokens only from administrators. */
  readonly signIn?: SignIn;
  /** The setting SUGGESTED_CHATS. */
  readonly suggested?: readonly string[];
  /** The address ranges of proxies. `X-Forwarded-For` is ignored if the connection comes from any other address. */
  readonly trustedProxies?: readonly string[];
  readonly onResult?: ((request: ApiRequest, result: unknown) => void) | undefined;
  /** The functions that send the public pages of posts. Undefined if the web application was not built. */
  readonly postPages?: PostPages | undefined;
  readonly own: Readonly<Record<string, (request: ApiRequest) => void | Promise<void>>>;
}

export interface CallContext extends DispatchOptions {
  readonly methodNamed: (name: string) => Method | undefined;
  readonly findEndpoint: FindEndpoint;
  readonly callers: Callers;
  readonly adminClients: AdminClients;
  readonly shares: Shares;
  readonly downloads: Downloads;
  readonly clientAddress: (request: ApiRequest) => string;
}

/** Runs a call within its account's share of the event loop. Drops a waiting call if its client disconnects. */
export function inTurn(
  { shares }: CallContext,
  request: ApiRequest,
  account: number | string,
  call: () => void | Promise<void>,
): void | Promise<void> {
  const { body, query } = request;
  return shares.run(account, body.length + query.length, () => (request.aborted ? undefined : call()));
}

export const bytesOf = (uploads: ReadonlyMap<string, UploadedFile>): number =>
  [...uploads.values()].reduce((sum, { bytes }) => sum + bytes.length, 0);

export function envelope(result: unknown): string {
  if (result instanceof Prepared) return result.envelope;
  if (result instanceof Flat) return JSON.stringify({ ok: true, ...result.fields });
  if (result instanceof Described) {
    return JSON.stringify({ ok: true, result: result.result, description: result.description });
  }
  return result === undefined
    ? '{"ok":true,"result":true}'
    : `{"ok":true,"result":${JSON.stringify(result)}}`;
}

/** Replies with a result, unless the handler has already replied. */
export function finish({ onResult }: CallContext, request: ApiRequest, result: unknown): void {
  onResult?.(request, result);
  if (result !== replied) request.reply(200, envelope(result));
}

/** Converts an `ApiError` to a reply. Rethrows any other error, which the HTTP layer then logs. */
export function refused(error: unknown): Outcome {
  if (!(error instanceof ApiError)) throw error;
  return { status: error.code, body: errorEnvelope(error), retryAfter: error.retryAfter };
}

export function reply(request: ApiRequest, { status, body, retryAfter }: Outcome): void {
  request.reply(status, body, retryAfter);
}
