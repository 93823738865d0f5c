/** Defines the dependencies shared by all parts of the store. */
import type { Replicas } from '../../postgres/replicas.js';
import type { Shard, Shards } from '../../postgres/shards.js';
import type { Database } from '../../postgres/sql.js';
import type { Random } from '../../random.js';
import { redisLimits } from '../../redis/limits.js';
import type { ScriptRunner } from '../../redis/scripts/scripts.js';
import type { Time } from '../../time.js';
import type { Keys } from './keys.js';
import type { Secrets } from './secrets.js';

export type StoreShard = Pick<Shard, 'id' | 'pool'> & { readonly db: Database };

export interface StoreShards {
  readonly all: readonly StoreShard[];
  /** Returns the shard of a partition. Error: `unavailable`. */
  of(partition: number): StoreShard;
  readonly at: Shards['at'];
  owned(shard: StoreShard): readonly number[];
}

/**
 * Returns shards whose databases are wrapped by `once`, so that a repeated call does not run its transactions again.
 * `partition` is any partition that is stored in the database.
 */
export function shardsOnce(
  shards: StoreShards,
  once: (db: Database, partition: number) => Database,
): StoreShards {
  return { ...shards, at: (...partitions) => once(shards.at(...partitions), partitions[0] as number) };
}

export interface StoreContext {
  readonly db: Database;
  /** The Postgres standby servers. Messages that are not in Redis are read from them. */
  readonly replicas: Replicas;
  readonly shards: StoreShards;
  readonly scripts: ScriptRunner;
  readonly keys: Keys;
  readonly secrets: Secrets;
  readonly time: Time;
  readonly random: Random;
  /** How long a record from Postgres stays in Redis, in ms. */
  readonly hotTtlMs: number;
  readonly transferConsent: boolean;
  /** The setting EDIT_AFTER_PRESS: each press of a button allows the bot one additional edit. */
  readonly editAfterPress: boolean;
  /** The setting BASE_URL without a final slash. */
  readonly baseUrl: string;
  /** How many people are listed for each emoji of a post, at most ruleLimits.reactors_listed_max. */
  readonly reactorsListed: number;
  /** The setting BOTS_PER_OWNER. If absent, ruleLimits.bots_per_owner_max applies. */
  readonly botsPerOwner?: number | undefined;
  /** The setting JWT_ISSUER or OIDC_ISSUER, or undefined if there is no identity provider. */
  readonly issuer?: string | undefined;
  /**
   * Returns the request id of the next change. Call it once per change, before the first attempt. If the call runs
   * again under the same idempotency key, it gets the same ids in the same order. `uniqueText` does not guarantee this.
   */
  readonly requestId: () => string;
  /**
   * Returns a text that is different in every call on every node. Used for fill tickets and for the names of long
   * polls.
   */
  readonly uniqueText: () => string;
  /** Whether an earlier run of the same call may have applied changes under the same request ids. */
  readonly again: boolean;
  /** Whether the call is answered only when its changes are in Postgres (decision 0055). Off by default. */
  readonly durable?: boolean;
}

/**
 * Returns how long a record from Postgres stays in Redis, in ms. This time is shorter while the Redis server is full.
 */
export const readBackTtlMs = (
  { scripts, hotTtlMs }: Pick<StoreContext, 'scripts' | 'hotTtlMs'>,
  partition: number,
): number => (scripts.isFull(partition) ? Math.min(hotTtlMs, redisLimits.redis_full_ttl_ms) : hotTtlMs);

/** Creates a function that returns a new text at each call. No other node gets the same texts. */
export function createUniqueText(random: Random): () => string {
  const prefix = random.bytes(9).toString('base64url');
  let counter = 0;
  return () => {
    counter = (counter + 1) % Number.MAX_SAFE_INTEGER;
    return `${prefix}${counter.toString(36)}`;
  };
}

/**
 * Why a call may be attempted again. With `once`, the client sent an idempotency key. With `answer`, the bot made the
 * call in its answer to a webhook delivery, and the delivery may be repeated.
 */
export type CallOrigin = 'once' | 'answer';

/**
 * Creates the request ids for a call that may be repeated. The same seed gives the same ids. `next` shows the next id
 * without using it up. `lua/lib/request.lua` recognises these ids by their prefix.
 */
export function requestIdsOf(seed: string, origin: CallOrigin = 'once') {
  let drawn = 0;
  const id = (n: number) => `${origin}.${seed}.${n}`;
  return { draw: () => id(++drawn), next: () => id(drawn + 1) };
}

/**
 * How many times a call may load missing records and try again. If records are still missing after the last attempt,
 * the call fails with `unavailable`.
 */
export const fillAttemptsMax = 6;
