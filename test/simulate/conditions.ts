/**
 * Chooses the conditions of one run at random: how fast simulated time moves, how long records stay in Redis, which
 * chats clients use, and which faults happen. With different conditions, the runs cover more orders of steps.
 */
import type { ChatRef } from '../../src/store/core/keys.js';
import { directs, group } from './people.js';
import { SeededRandom } from './seeded_random.js';

export interface Conditions {
  /** The share of steps that move the simulated time although another event could happen first. */
  readonly impatience: number;
  /**
   * How long flushed records stay in Redis. This time is short, so that runs often load records from Postgres again.
   */
  readonly hotTtlMs: number;
  /** The chats that clients use. With fewer chats, more calls are concurrent in one chat. */
  readonly chats: readonly ChatRef[];
  /** The share of calls that send a message. With fewer messages, each message gets more edits. */
  readonly sends: number;
  /** The share of messages whose sender waits until the message is in Postgres. */
  readonly durable: number;
  /** The share of calls that bot owners make. These calls concern tokens, webhooks and polls. */
  readonly owners: number;
  /** The share of calls about tokens among the calls that bot owners make. */
  readonly tokens: number;
  /** The share of calls about pins and reactions. With a low share, other calls are more often concurrent. */
  readonly marks: number;
  /** The share of calls about pins among the calls about pins and reactions. */
  readonly pins: number;
  /** The maximum number of posts. With fewer posts, more concurrent calls concern the same post. */
  readonly posts: number;
  /** How many calls about one post a person makes at a time. */
  readonly callsPerPerson: number;
  /**
   * The share of steps in which a client makes a call. With fewer calls, more records leave Redis between two calls.
   */
  readonly calls: number;
  /**
   * The number of steps after which a client sends its call again, to any front, while the first front still works on
   * the call.
   */
  readonly patience: number;
  /** The share of message calls that delete a message. */
  readonly deletes: number;
  /** The maximum delay, in ms, of the commands and replies on a slow connection. For comparison, a lease lasts 5 s. */
  readonly lateMsMax: number;
  /** The share of hints that are lost. */
  readonly hintsLost: number;
  /** The share of requests that a receiver answers late, by up to 12 s. */
  readonly slowAnswers: number;
  /** The share of Postgres statements, and of their answers, that are delayed by up to 6 s. */
  readonly slowPostgres: number;
  /**
   * The share of steps after which Redis saves its data. In a failover, Redis loses the changes since it last saved
   * them.
   */
  readonly syncs: number;
  /** The share of steps that begin a fault or a series of faults. */
  readonly faults: number;
  /** Returns whether a kind of fault happens in this run. */
  allows(kind: string): boolean;
}

interface Focus extends Partial<Omit<Conditions, 'allows'>> {
  readonly kinds: readonly string[];
}

/**
 * Named sets of conditions, called focuses. In a run with a focus, only a few kinds of faults happen, but often. Half
 * of the seeds have a focus.
 */
export const focuses: Readonly<Record<string, Focus>> = {
  // A command from a worker reaches Redis after another worker got the lease, or a worker gets its lease late.
  'late commands': {
    ...{ chats: directs.slice(0, 1), sends: 0.9, owners: 0.3, tokens: 0, marks: 0, calls: 0.05 },
    ...{ patience: 3_000, slowAnswers: 0.5, slowPostgres: 0, hotTtlMs: 4_000, impatience: 0.1 },
    ...{ lateMsMax: 15_000, faults: 0.003 },
    kinds: ['commands reach Redis late', 'Redis answers late'],
  },
  // A post leaves Redis and is loaded again while its reactions change.
  posts: {
    ...{ owners: 0, marks: 0.95, pins: 0, posts: 1, hotTtlMs: 200, calls: 0.2, patience: 200 },
    ...{ slowPostgres: 0.1, impatience: 0.03, faults: 0.004 },
    kinds: ['Postgres answers late', 'commands reach Redis late', 'a connection to Redis breaks'],
  },
  // Messages are pinned, unpinned and deleted. The chat leaves Redis and is loaded again.
  pins: {
    ...{ sends: 0.5, owners: 0, marks: 0.7, pins: 1, deletes: 0.1, hotTtlMs: 200, calls: 0.1 },
    ...{ patience: 3_000, slowPostgres: 0.04, slowAnswers: 0, impatience: 0.04, faults: 0.002 },
    kinds: ['Postgres answers late', 'a connection to Redis breaks'],
  },
  // Records leave Redis and are loaded again while clients change them. Each flush takes a long time.
  'late flushes': {
    ...{ owners: 0, marks: 0, hotTtlMs: 200, calls: 0.04, patience: 3_000 },
    ...{ slowPostgres: 0.2, slowAnswers: 0, impatience: 0.06, faults: 0.002 },
    kinds: ['Postgres answers late', 'statements reach Postgres late'],
  },
  // Bots poll, and often switch from polls to webhooks or back.
  polls: {
    ...{ sends: 0.6, owners: 0.5, tokens: 0, marks: 0, calls: 0.2, patience: 3_000, hotTtlMs: 4_000 },
    ...{ slowAnswers: 0.6, slowPostgres: 0, hintsLost: 0.1, impatience: 0.04, faults: 0.002 },
    kinds: ['Redis answers late', 'a connection to Redis breaks'],
  },
  // Redis repeatedly loses changes.
  losses: {
    ...{ sends: 0.7, durable: 0.8, owners: 0, marks: 0, syncs: 0.01, calls: 0.2, faults: 0.006 },
    ...{ patience: 3_000, hintsLost: 0.1, slowPostgres: 0, impatience: 0.02, slowAnswers: 0 },
    kinds: ['Redis fails over and loses its tail', 'commands reach Redis late'],
  },
  // Redis loses changes that Postgres still has.
  'outdated records': {
    ...{ sends: 0.1, owners: 0, marks: 0, syncs: 0.004, hotTtlMs: 4_000, calls: 0.2, faults: 0.005 },
    ...{ patience: 3_000, slowPostgres: 0, impatience: 0.02, slowAnswers: 0 },
    kinds: ['Redis fails over and loses its tail'],
  },
};

/** Chooses the conditions of this seed. `wanted` names a key of `focuses` to use instead of a random choice. */
export function drawConditions(seed: number, wanted?: string): Conditions {
  const random = new SeededRandom(seed ^ 0x2545f491);
  const drawn = {
    impatience: random.pick([0.02, 0.05, 0.12]),
    hotTtlMs: random.pick([200, 1_000, 4_000]),
    chats: random.pick([[...directs, group], [random.pick(directs), group], [random.pick(directs)], [group]]),
    sends: random.pick([0.05, 0.15, 0.4]),
    owners: random.pick([0, 0.3, 0.6]),
    tokens: random.pick([0.5, 0.95]),
    hintsLost: random.pick([0.1, 0.4]),
    slowAnswers: random.pick([0, 0.05, 0.3]),
    slowPostgres: random.pick([0, 0.04, 0.2]),
    syncs: random.pick([0, 0.003, 0.01]),
    faults: random.pick([0.004, 0.008, 0.015]),
  };
  const kindSeed = random.int(0, 2 ** 16);
  const share = random.pick([0.3, 0.7]);
  const kinds = new Map<string, boolean>();
  const allows = (kind: string) => {
    const known = kinds.get(kind) ?? new SeededRandom(kindSeed + 31 * kinds.size).chance(share);
    kinds.set(kind, known);
    return known;
  };
  const more = new SeededRandom(seed ^ 0x6b8b4567);
  const all = {
    ...drawn,
    marks: more.pick([0, 0, 0.3, 0.9]),
    pins: more.pick([0, 0.5]),
    posts: more.pick([1, 4]),
    callsPerPerson: more.pick([1, 3]),
    calls: more.pick([0.05, 0.2]),
    patience: more.pick([60, 200, 3_000]),
    deletes: more.pick([0.03, 0.15]),
    lateMsMax: more.pick([6_000, 15_000]),
    durable: 0.3,
  };
  const drawnFocus = more.chance(0.5) ? more.pick(Object.keys(focuses)) : undefined;
  const focus = focuses[wanted ?? drawnFocus ?? ''];
  return {
    ...all,
    ...focus,
    allows: focus ? (kind) => focus.kinds.includes(kind) : allows,
  };
}
