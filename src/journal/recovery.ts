/** Raises a partition's incarnation when Redis may have lost its last changes, so that no version is given out twice. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../errors.js';
import { limits } from '../limits.js';
import { isUnavailable, type Pool, statement } from '../postgres/pool.js';
import { byShard, type Shards } from '../postgres/shards.js';
import type { RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';
import { createForgetter } from './forget.js';

export interface RecoveryOptions {
  /** Called with each recovery, because the shard map is loaded later than this object is created. */
  readonly shards: () => Shards;
  readonly keys: Keys;
  readonly connection: RedisServers;
  /** Setting JOURNAL_HIGH_WATER, in entries. */
  readonly highWater: number;
  /** Journal bytes above which changes are refused: setting JOURNAL_BYTES_MAX. */
  readonly bytesMax: number;
  /** Called with each recovery: the runner is created together with `recover`. */
  readonly runner: () => ScriptRunner;
  /**
   * Whether the seal of a role proves that Redis lost nothing. Set it only where the data of Redis cannot be an older
   * copy.
   */
  readonly trustSeals?: boolean;
  /** Id of the installation, stored in each partition. */
  readonly installation?: () => string;
  /** Called for each partition that continues under a raised incarnation, except when it is opened for the first time. */
  readonly onRaised?: (raised: RaisedPartition) => void;
}

export interface RaisedPartition {
  readonly partition: number;
  /**
   * True if Postgres has changes that Redis lost; the changes that Postgres has are safe. False if nobody knows
   * whether Redis lost any.
   */
  readonly proven: boolean;
}

export interface Recovery {
  /**
   * Opens a partition for the Redis of this run id. Does nothing if it is open, or if the connection reaches another
   * Redis by now. Errors: `unavailable` while Postgres or Redis is unavailable.
   */
  recover(partition: number, runId: string): Promise<void>;
  /** Opens many partitions like `recover`, with one statement for those that need it: used when a node starts. */
  openAll(partitions: readonly number[], runId: string): Promise<void>;
  /**
   * Closes partitions to changes as the last step of a clean Redis shutdown, so that the next start knows that
   * nothing was lost. The seal of an operator is trusted everywhere for limits.redis_seal_age_ms_max, as long as the
   * Postgres server that records it keeps running. Errors: `unavailable`; the next start is then as cautious as after
   * a crash.
   */
  seal(partitions: readonly number[], byOperator?: boolean): Promise<void>;
}

const raceTriesMax = 20;

const seenIncarnations = statement(
  'seen_incarnations',
  'select partition, incarnation, flushed_version, flushed_at from partitions where partition = any($1::int[])',
);

/** Records a loss of Redis. Nodes discover one loss partition by partition, so the counts are added up. */
const noteLoss = statement(
  'note_redis_loss',
  `insert into installation as i (name, value)
   values ('redis_lost', json_build_object('at', now(), 'partitions', $1::int, 'flushed_at', $2::timestamptz)::text)
   on conflict (name) do update set value = json_build_object(
     'at', now(),
     'partitions', $1::int + case when (i.value::json ->> 'at')::timestamptz > now() - interval '10 minutes'
       then (i.value::json ->> 'partitions')::int else 0 end,
     'flushed_at', $2::timestamptz)::text`,
);

/**
 * The incarnation a partition gets is registered before it is used and given to one caller only. A row that was raised
 * since it was seen is left alone: its raiser is at work, and a hundred nodes that meet one failover need one raise.
 * What the watermark proves counts as well, so that a row brought back from a backup cannot lag behind its own rows.
 */
const raiseIncarnations = statement(
  'raise_incarnations',
  `with wanted as (
     select * from unnest($1::int[], $2::int[], $3::int[]) as w (partition, exceeds, seen)
   )
   insert into partitions as p (partition, incarnation, run_id)
   select partition, exceeds + 1, $4 from wanted order by partition
   on conflict (partition) do update set
     incarnation = greatest(p.incarnation, excluded.incarnation - 1, (p.flushed_version >> 40)::int) + 1,
     run_id = excluded.run_id,
     seal = null
   where p.incarnation = (select seen from wanted w where w.partition = p.partition) and p.left_at is null
   returning partition, incarnation,
     coalesce((select last_number from post_sequences s where s.partition = p.partition), 0) as post`,
);

const noteSeal = statement(
  'note_seal',
  `update partitions set seal = $2, seal_run = null, sealed_at = now(),
          seal_postgres = case when $3::boolean then pg_postmaster_start_time() end
    where partition = any($1::int[]) and left_at is null`,
);

/**
 * A seal opens one run of Redis: a copy of sealed data that is started later is not trusted. Restoring both servers
 * from backups restarts Postgres, so an operator's seal is not trusted then.
 */
const claimSeals = statement(
  'claim_seals',
  `update partitions set seal_run = $2
    where partition = any($1::int[]) and left_at is null and seal is not null and coalesce(seal_run, $2) = $2
      and ($3::boolean or (seal_postgres = pg_postmaster_start_time()
            and sealed_at > now() - interval '${limits.redis_seal_age_ms_max} milliseconds'))
   returning partition, seal`,
);

interface Behind {
  readonly partition: number;
  /** The greatest version that Redis proves to have given out. */
  readonly highest: number;
}

interface Seen {
  partition: number;
  incarnation: number;
  /** Every version up to this one is in Postgres. */
  flushed_version: number;
  flushed_at: Date | null;
}

interface Raised {
  partition: number;
  incarnation: number;
  /** Number of the partition's last post that Postgres has. */
  post: number;
}

/** Creates the recovery that the script runner calls when a script refuses with `stale_run`. */
export function createRecovery({
  shards,
  keys,
  connection,
  highWater,
  bytesMax,
  runner,
  trustSeals = false,
  installation = () => '',
  onRaised,
}: RecoveryOptions): Recovery {
  const forgetter = createForgetter({ keys, connection, runner });
  const underWay = new Map<string, Promise<void>>();

  /**
   * Applies an incarnation to a partition in Redis; 0 only reads its state. Returns null when nothing is left to do
   * here.
   */
  async function apply({ partition, incarnation, post }: Raised, runId: string): Promise<Behind | null> {
    const result = await runner().call(
      'partition/recover',
      partition,
      { meta: keys.meta(partition), journal: keys.journal(partition) },
      {
        ...{ expected: runId, incarnation, post, high_water: highWater, bytes_max: bytesMax },
        installation: installation(),
      },
    );
    return result.status === 'behind' ? { partition, highest: result.highest } : null;
  }

  async function applyAll(wanted: readonly Raised[], runId: string): Promise<Behind[]> {
    const found = await Promise.all(wanted.map((w) => apply(w, runId)));
    return found.filter((behind) => behind !== null);
  }

  const ask = (partitions: readonly number[], runId: string) =>
    applyAll(
      partitions.map((partition) => ({ partition, incarnation: 0, post: 0 })),
      runId,
    );

  /** Asks each shard about its own partitions of these, in parallel. Errors: those of any shard. */
  async function askShards<T, R extends object>(
    items: readonly T[],
    partitionOf: (item: T) => number,
    ask: (pool: Pool, own: readonly T[]) => Promise<{ readonly rows: R[] }>,
  ): Promise<R[]> {
    const asked = [...byShard(shards(), items, partitionOf)];
    return (await Promise.all(asked.map(async ([{ pool }, own]) => (await ask(pool, own)).rows))).flat();
  }
  const self = (partition: number) => partition;

  async function raise(behind: readonly Behind[], seen: ReadonlyMap<number, Seen>, runId: string) {
    const rows = await askShards(
      behind,
      (b) => b.partition,
      (pool, own) =>
        pool.transaction((tx) =>
          tx.query<Raised>(raiseIncarnations, [
            own.map((b) => b.partition),
            own.map((b) => Math.floor(b.highest / limits.versions_per_incarnation)),
            own.map((b) => seen.get(b.partition)?.incarnation ?? 0),
            runId,
          ]),
        ),
    );
    for (const row of rows) {
      if (row.incarnation >= limits.incarnations_max) {
        throw new Error(`partition ${row.partition} has used up its ${limits.incarnations_max} incarnations`);
      }
    }
    return rows;
  }

  /**
   * If Postgres has a later version than Redis ever gave out, Redis lost changes that were flushed. Every journaled
   * entity still in Redis is in Postgres, in the same version or a later one, so it is removed from Redis. Returns the
   * partitions that may be opened; another node works on the others.
   */
  async function forgetOlder(
    behind: readonly Behind[],
    seen: ReadonlyMap<number, Seen>,
    runId: string,
  ): Promise<readonly Behind[]> {
    const older = behind.filter((b) => (seen.get(b.partition)?.flushed_version ?? 0) > b.highest);
    if (older.length === 0) return behind;
    const forgotten = await forgetter.forget(
      older.map((b) => b.partition),
      runId,
    );
    return behind.filter((b) => !older.includes(b) || forgotten.has(b.partition));
  }

  async function tell(
    raised: readonly Raised[],
    behind: readonly Behind[],
    seen: ReadonlyMap<number, Seen>,
  ): Promise<void> {
    const lost: Seen[] = [];
    for (const { partition } of raised) {
      const highest = behind.find((b) => b.partition === partition)?.highest ?? 0;
      const before = seen.get(partition);
      if (before === undefined) continue;
      const proven = before.flushed_version > highest;
      if (proven) lost.push(before);
      onRaised?.({ partition, proven });
    }
    if (lost.length === 0) return;
    const flushed = lost.flatMap(({ flushed_at: at }) => (at === null ? [] : [at.getTime()]));
    await shards().control.pool.query(noteLoss, [
      lost.length,
      flushed.length > 0 ? new Date(Math.max(...flushed)) : null,
    ]);
  }

  /** Opens partitions whose seal proves that nothing was lost; returns the other partitions. */
  async function unseal(closed: readonly number[], runId: string): Promise<number[]> {
    if (closed.length === 0) return [];
    const rows = await askShards(closed, self, (pool, own) =>
      pool.query<{ partition: number; seal: string }>(claimSeals, [own, runId, trustSeals]),
    );
    const opened = new Set<number>();
    await Promise.all(
      rows.map(async ({ partition, seal }) => {
        const args = { expected: runId, seal, high_water: highWater, bytes_max: bytesMax };
        const at = { meta: keys.meta(partition) };
        const { status } = await runner().call('partition/unseal', partition, at, args);
        if (status === 'ok') opened.add(partition);
      }),
    );
    return closed.filter((partition) => !opened.has(partition));
  }

  async function seal(partitions: readonly number[], byOperator = false): Promise<void> {
    const text = randomUUID();
    await Promise.all(
      partitions.map((partition) =>
        runner().call('partition/seal', partition, { meta: keys.meta(partition) }, { seal: text }),
      ),
    );
    await askShards(partitions, self, (pool, own) => pool.query(noteSeal, [own, text, byOperator]));
  }

  async function open(partitions: readonly number[], runId: string): Promise<void> {
    const behind = (await ask(partitions, runId)).map((b) => b.partition);
    let closed = await unseal(behind, runId);
    for (let tries = 1; closed.length > 0; tries++) {
      if (tries > raceTriesMax) throw new ApiError('unavailable', { retry_after: 1 });
      const rows = await askShards(closed, self, (pool, own) => pool.query<Seen>(seenIncarnations, [own]));
      const seen = new Map(rows.map((row) => [row.partition, row]));
      // Redis is asked after the rows were read: an earlier raise is applied by now, or shows in the statements below.
      const behind = await ask(closed, runId);
      const clean = await forgetOlder(behind, seen, runId);
      const raised = clean.length === 0 ? [] : await raise(clean, seen, runId);
      const stillBehind = await applyAll(raised, runId);
      await tell(raised, behind, seen);
      const mine = new Set(raised.map((r) => r.partition));
      const lost = behind.filter((b) => !mine.has(b.partition));
      closed = [...stillBehind, ...lost].map((b) => b.partition);
      if (lost.length > 0) await sleep(20 + Math.random() * 40);
    }
  }

  async function openOrRefuse(partitions: readonly number[], runId: string): Promise<void> {
    try {
      await open(partitions, runId);
    } catch (error) {
      if (isUnavailable(error)) throw new ApiError('unavailable', { retry_after: 1 });
      throw error;
    }
  }

  return {
    recover(partition, runId) {
      const id = `${partition} ${runId}`;
      let recovery = underWay.get(id);
      if (!recovery) {
        recovery = openOrRefuse([partition], runId).finally(() => underWay.delete(id));
        underWay.set(id, recovery);
      }
      return recovery;
    },
    openAll: openOrRefuse,
    seal,
  };
}
