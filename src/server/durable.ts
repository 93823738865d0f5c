/**
 * Answers durable calls. A durable call is answered only after its changes are in Postgres (behaviour §1, decision
 * 0055).
 */
import type { Store } from '../store/store.js';
import type { CallContext } from './call_context.js';
import type { Outcome } from './idempotency.js';
import type { ApiRequest } from './request.js';

const durablePreference = /(?:^|,)\s*durable\s*(?:$|[,;])/i;

/**
 * Returns whether a call that changes state is durable, because of the setting DURABLE or its header `Prefer: durable`.
 */
export const isDurable = ({ durable }: CallContext, { prefer }: ApiRequest): boolean =>
  durable === true || (prefer !== '' && durablePreference.test(prefer));

/**
 * Runs `answer` with a store that records its changes. Resolves with the result when these changes are in Postgres.
 * Rejects immediately if `answer` rejects. The call counts against the limits of `account`. Throws `too_many_requests`
 * or `not_durable`.
 */
export const durably = (
  store: Store,
  request: ApiRequest,
  account: number | string,
  answer: (on: Store) => Promise<Outcome>,
): Promise<Outcome> =>
  store.durability.run(
    { account, onGone: (listener) => request.onAbort(listener) },
    (changes) => answer(store.noting(changes)),
    ({ body }) => Buffer.byteLength(body),
  );
