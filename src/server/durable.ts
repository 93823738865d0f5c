/**
 * Answers durable calls. Such a call is answered only when its changes are in Postgres (behaviour §1, decision 0055).
 */
import type { Store } from '../store/store.js';
import type { CallContext } from './call_context.js';
import type { Outcome } from './idempotency.js';
import type { ApiRequest } from './request.js';

const durablePreference = /(?:^|,)\s*durable\s*(?:$|[,;])/i;

/** Returns whether a call that changes state is durable: by the setting DURABLE, or by its header `Prefer: durable`. */
export const isDurable = ({ durable }: CallContext, { prefer }: ApiRequest): boolean =>
  durable === true || (prefer !== '' && durablePreference.test(prefer));

/**
 * Runs `answer` with a store that records the changes of `answer`. Resolves with the result of `answer` when these
 * changes are in Postgres. Rejects immediately if `answer` rejects. The call counts against the limits of `account`.
 * Errors: `too_many_requests`, `not_durable`.
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
