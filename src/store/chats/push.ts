/** Manages browsers' push subscriptions, and pending notifications. Both are stored only in Postgres. */

import * as rows from '../../postgres/accounts/push.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

export type {
  Addressee,
  DueRow,
  NotedMessage,
  SubscriptionFact,
  SubscriptionKeys,
} from '../../postgres/accounts/push.js';

export type Push = ReturnType<typeof createPush>;

export function createPush({ db, secrets }: StoreContext) {
  return {
    /**
     * Adds a person's push subscription. If the person has more than limits.push_subscriptions_max, removes the oldest.
     * The subscription ends when `token` is revoked or expires. Errors: `unauthorized`, `unavailable`.
     */
    subscribe: (user: number, keys: rows.SubscriptionKeys, token: string) =>
      rows.putSubscription(db, user, keys, secrets.lookups(token), limits.push_subscriptions_max),
    unsubscribe: (user: number, endpoint: string) => rows.removeSubscription(db, user, endpoint),
    subscriptions: (user: number) => rows.loadSubscriptions(db, user),
    anybody: () => rows.anySubscription(db),
    note: (
      messages: readonly rows.NotedMessage[],
      delayMs: number,
      recipientsMax: number = limits.push_recipients_max,
    ) =>
      rows.noteDue(db, messages, {
        ...{ delayMs, recipientsMax },
        ...{ gapMs: limits.push_gap_ms, dueMax: limits.push_due_max },
      }),
    /** Takes due notifications. Each notification is taken by only one process. */
    take: (limit: number) => rows.takeDue(db, limit),
    /** Returns the milliseconds until a notification is due, or null if none is pending. */
    untilDue: () => rows.untilDue(db),
    /**
     * Returns one row for each browser to notify. Skips people who have already read the message, or who have muted the
     * chat.
     */
    addressees: (due: readonly rows.DueRow[]) => rows.loadAddressees(db, due),
    /**
     * Records which people were notified. Within limits.push_gap_ms, these people get no other notification about the
     * same chat.
     */
    notified: (notified: readonly rows.DueRow[]) => rows.recordNotified(db, notified),
    /** Removes a subscription that the push service does not know any more. */
    gone: (id: number) => rows.dropSubscription(db, id),
    /**
     * Records whether a push message was accepted. After limits.push_failures_max consecutive failures, removes the
     * browser's subscription.
     */
    outcome: (id: number, failed: boolean) => rows.countFailure(db, id, failed, limits.push_failures_max),
    purge: () => rows.purgeDue(db, limits.push_age_ms_max * 2),
  };
}
