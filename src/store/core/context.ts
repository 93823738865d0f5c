/** Dependencies shared by all aggregates of the store. */
import { randomBytes } from 'node:crypto';
import { limits } from '../../limits.js';
import type { Replicas } from '../../postgres/replicas.js';
import type { Shard } from '../../postgres/shards.js';
import type { Database } from '../../postgres/sql.js';
import type { ScriptRunner } from '../../redis/scripts/scripts.js';
import type { Keys } from './keys.js';
import type { Secrets } from './secrets.js';

/** The part of a shard that the store uses. */
export type StoreShard = Pick<Shard, 'id' | 'db' | 'pool'>;

/** The databases of the tables written behind. */
export interface StoreShards {
  readonly all: readonly StoreShard[];
  /** The shard of a partition. Error: `unavailable`. */
  of(partition: number): StoreShard;
  owned(shard: StoreShard): readonly number[];
}

/**
 * Wraps the shards for a call that may be rerun. Each shard is wrapped on first use, because most such calls use
 * none.
 */
export function shardsOnce(shards: StoreShards, once: (db: Database) => Database): StoreShards {
  const made = new Map<number, StoreShard>();
  return {
    all: shards.all,
    owned: shards.owned,
    of(partition) {
      const { id, db, pool } = shards.of(partition);
      const shard = made.get(id) ?? { id, db: once(db), pool };
      made.set(id, shard);
      return shard;
    },
  };
}

export interface StoreContext {
  /** Database of the control records. */
  readonly db: Database;
  /** Standbys that serve reads of messages which are not in Redis. */
  readonly replicas: Replicas;
  readonly shards: StoreShards;
  readonly scripts: ScriptRunner;
  readonly keys: Keys;
  readonly secrets: Secrets;
  /** How long a record read from Postgres stays in Redis, in milliseconds. */
  readonly hotTtlMs: number;
  /** Whether transfers of bots need consent: setting TRANSFER_CONSENT. */
  readonly transferConsent: boolean;
  /** How many reactors are listed per emoji, at most limits.reactors_listed_max. */
  readonly reactorsListed: number;
  /** Setting BOTS_PER_OWNER; limits.bots_per_owner_max if absent. */
  readonly botsPerOwner?: number | undefined;
  /** Setting JWT_ISSUER; undefined without an identity provider. */
  readonly issuer?: string | undefined;
  /**
   * Returns the request id of the next change. Call it once per change, before the first attempt. A call rerun under
   * the same idempotency key then gets the same ids in the same order. Never use `uniqueText` instead.
   */
  readonly requestId: () => string;
  /** Whether an earlier run of the same call may have applied changes under the same request ids. */
  readonly again: boolean;
}

/** How long a record read from Postgres stays in Redis, in milliseconds; shorter while its server is full. */
export const readBackTtlMs = (
  { scripts, hotTtlMs }: Pick<StoreContext, 'scripts' | 'hotTtlMs'>,
  partition: number,
): number => (scripts.isFull(partition) ? Math.min(hotTtlMs, limits.redis_full_ttl_ms) : hotTtlMs);

let counter = 0;
const prefix = randomBytes(9).toString('base64url');

/** A text unique over all calls and nodes: a request id, a ticket or the name of a poll. */
export function uniqueText(): string {
  counter = (counter + 1) % Number.MAX_SAFE_INTEGER;
  return `${prefix}${counter.toString(36)}`;
}

/** Why a call may run again: an idempotency key, or a webhook answer that may be redelivered. */
export type CallOrigin = 'once' | 'answer';

/**
 * Request ids of a call that may be rerun: the same for the same seed. `next` returns the next id without using it.
 * `lua/lib/request.lua` recognises them by their prefix.
 */
export function requestIdsOf(
  seed: string,
  origin: CallOrigin = 'once',
): { readonly draw: () => string; readonly next: () => string } {
  let drawn = 0;
  const id = (n: number) => `${origin}.${seed}.${n}`;
  return { draw: () => id(++drawn), next: () => id(drawn + 1) };
}

/** How often a call may load missing records and retry, before the service counts as overloaded. */
export const fillAttemptsMax = 6;
