/** Browsers that people are notified in, and what they are to be notified of. All of it is kept in Postgres alone. */
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
  /** Adds a browser to a person, up to limits.push_subscriptions_max: then the oldest goes. It goes with `token`, too. Errors:
   * `unauthorized`, `unavailable`. */
  subscribe(user: number, keys: rows.SubscriptionKeys, token: string): Promise<void>;
  unsubscribe(user: number, endpoint: string): Promise<void>;
  /** The oldest first. */
  subscriptions(user: number): Promise<readonly rows.SubscriptionFact[]>;
  /** Whether anybody is to be notified at all. */
  anybody(): Promise<boolean>;
  /** Notes who is to be told of messages, `delayMs` from now. */
  note(messages: readonly rows.NotedMessage[], delayMs: number, recipientsMax?: number): Promise<void>;
  /** Hands out what is due, each to one process, once. */
  take(limit: number): Promise<readonly rows.DueRow[]>;
  /** How long until something is due, in ms; null when nothing is noted. */
  untilDue(): Promise<number | null>;
  /** Of what is due a row for each browser; none for who read the message or muted the chat meanwhile. */
  addressees(due: readonly rows.DueRow[]): Promise<readonly rows.Addressee[]>;
  /** Notes that people are told now: of one chat not again within limits.push_gap_ms. */
  told(rows: readonly rows.DueRow[]): Promise<void>;
  /** A push service knows the browser no more. */
  gone(subscription: number): Promise<void>;
  /** What came of a push: after limits.push_failures_max failures in a row the browser is removed. */
  outcome(subscription: number, failed: boolean): Promise<void>;
  /** Forgets what was noted too long ago to be told. */
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
