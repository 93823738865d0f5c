/** Push subscriptions of browsers and pending notifications, both stored only in Postgres. */
import { limits } from '../../limits.js';
import * as rows from '../../postgres/accounts/push.js';
import type { StoreContext } from '../core/context.js';

export type {
  Addressee,
  DueRow,
  NotedMessage,
  SubscriptionFact,
  SubscriptionKeys,
} from '../../postgres/accounts/push.js';

export interface Push {
  /**
   * Adds a browser to a person. Beyond limits.push_subscriptions_max, the oldest is removed. The subscription ends with
   * `token`. Errors: `unauthorized`, `unavailable`.
   */
  subscribe(user: number, keys: rows.SubscriptionKeys, token: string): Promise<void>;
  unsubscribe(user: number, endpoint: string): Promise<void>;
  /** A person's subscriptions, oldest first. */
  subscriptions(user: number): Promise<readonly rows.SubscriptionFact[]>;
  /** Whether anybody has a subscription. */
  anybody(): Promise<boolean>;
  /** Schedules notifications of messages, `delayMs` from now. */
  note(messages: readonly rows.NotedMessage[], delayMs: number, recipientsMax?: number): Promise<void>;
  /** Takes due notifications. Each is returned to one process only. */
  take(limit: number): Promise<readonly rows.DueRow[]>;
  /** Milliseconds until the next notification is due; null if none is pending. */
  untilDue(): Promise<number | null>;
  /** One row per browser for due notifications. Skips people who have meanwhile read the message or muted the chat. */
  addressees(due: readonly rows.DueRow[]): Promise<readonly rows.Addressee[]>;
  /** Records that people were notified now. The same chat notifies them again only after limits.push_gap_ms. */
  told(rows: readonly rows.DueRow[]): Promise<void>;
  /** Removes a subscription that the push service no longer knows. */
  gone(subscription: number): Promise<void>;
  /** Records the outcome of a push. After limits.push_failures_max consecutive failures the browser is removed. */
  outcome(subscription: number, failed: boolean): Promise<void>;
  /** Deletes notifications that are too old to send. */
  purge(): Promise<void>;
}

export function createPush({ db, secrets }: StoreContext): Push {
  return {
    subscribe: (user, keys, token) =>
      rows.putSubscription(db, user, keys, secrets.lookups(token), limits.push_subscriptions_max),
    unsubscribe: (user, endpoint) => rows.removeSubscription(db, user, endpoint),
    subscriptions: (user) => rows.loadSubscriptions(db, user),
    anybody: () => rows.anySubscription(db),
    note: (messages, delayMs, recipientsMax = limits.push_recipients_max) =>
      rows.noteDue(db, messages, {
        ...{ delayMs, recipientsMax },
        ...{ gapMs: limits.push_gap_ms, dueMax: limits.push_due_max },
      }),
    take: (limit) => rows.takeDue(db, limit),
    untilDue: () => rows.untilDue(db),
    addressees: (due) => rows.loadAddressees(db, due),
    told: (told) => rows.noteTold(db, told),
    gone: (id) => rows.dropSubscription(db, id),
    outcome: (id, failed) => rows.countFailure(db, id, failed, limits.push_failures_max),
    purge: () => rows.purgeDue(db, limits.push_age_ms_max * 2),
  };
}
