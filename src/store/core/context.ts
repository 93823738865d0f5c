/** What every aggregate of the store works with. */
import { randomBytes } from 'node:crypto';
import { limits } from '../../limits.js';
import type { Replicas } from '../../postgres/replicas.js';
import type { Shard } from '../../postgres/shards.js';
import type { Database } from '../../postgres/sql.js';
import type { ScriptRunner } from '../../redis/scripts/scripts.js';
import type { Keys } from './keys.js';
import type { Secrets } from './secrets.js';

/** As far as the store needs it. */
export type StoreShard = Pick<Shard, 'id' | 'db' | 'pool'>;

/** Databases of the written-behind tables. */
export interface StoreShards {
  readonly all: readonly StoreShard[];
  /** Error: `unavailable`. */
  of(partition: number): StoreShard;
  owned(shard: StoreShard): readonly number[];
}

/** The same shards for a call that may run again; most of such calls need none of them. */
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
  /** Of control records. */
  readonly db: Database;
  /** Standbys that serve cold messages. */
  readonly replicas: Replicas;
  readonly shards: StoreShards;
  readonly scripts: ScriptRunner;
  readonly keys: Keys;
  readonly secrets: Secrets;
  /** How long what was read back stays in Redis, in milliseconds. */
  readonly hotTtlMs: number;
  /** Setting TRANSFER_CONSENT. */
  readonly transferConsent: boolean;
  /** How many of those who set an emoji are told with it, at most limits.reactors_listed_max. */
  readonly reactorsListed: number;
  /** Setting BOTS_PER_OWNER; limits.bots_per_owner_max if absent. */
  readonly botsPerOwner?: number | undefined;
  /** Setting JWT_ISSUER; undefined where no identity provider is set. */
  readonly issuer?: string | undefined;
  /**
   * The request id of the next change. One is drawn for each change, before its first try, so that a call that runs again
   * under the same idempotency key draws the same ones in the same order. Never `uniqueText` in its place.
   */
  readonly requestId: () => string;
  /** Whether a former run of the same call may have applied changes under the same request ids. */
  readonly again: boolean;
}

/** How long what is read back stays in Redis, in milliseconds: short while its server is full. */
export const readBackTtlMs = (
  { scripts, hotTtlMs }: Pick<StoreContext, 'scripts' | 'hotTtlMs'>,
  partition: number,
): number => (scripts.isFull(partition) ? Math.min(hotTtlMs, limits.redis_full_ttl_ms) : hotTtlMs);

let counter = 0;
const prefix = randomBytes(9).toString('base64url');

/** A text that no other call on any node gets: a request id, a ticket or the name of a poll. */
export function uniqueText(): string {
  counter = (counter + 1) % Number.MAX_SAFE_INTEGER;
  return `${prefix}${counter.toString(36)}`;
}

/** What a call belongs to that may run again: an idempotency key, or the answer to a delivery. */
export type CallOrigin = 'once' | 'answer';

/** Request ids of a call that may run again: the same for the same seed. `next` tells the one that is drawn next.
 * `lua/lib/request.lua` knows them by their begin. */
export function requestIdsOf(
  seed: string,
  origin: CallOrigin = 'once',
): { readonly draw: () => string; readonly next: () => string } {
  let drawn = 0;
  const id = (n: number) => `${origin}.${seed}.${n}`;
  return { draw: () => id(++drawn), next: () => id(drawn + 1) };
}

/** How often a call may find something missing, fill it and try again, before the service counts as overloaded. */
export const fillAttemptsMax = 6;
