/**
 * Raises a partition's incarnation when Redis may have lost its last changes, so that no version is assigned twice.
 * `test/models/incarnations.pml` models this protocol. In the model, `seen` and `seen_flushed` stand for the row
 * `Closed.seen`. `highest`, `raised` and `expected` stand for the values that have the same names in this file.
 */
import { isUnavailable, type Pool, statement } from '../postgres/pool.js';
import { byShard, type Shards } from '../postgres/shards.js';
import { type Random, systemRandom } from '../random.js';
import type { RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import { unavailable } from '../redis/waiting.js';
import type { Keys } from '../store/core/keys.js';
import { storeLimits } from '../store/limits.js';
import { systemTime, type Time } from '../time.js';
import { Forgetter } from './forget.js';
import { journalLimits as limits } from './limits.js';

export interface RecoveryOptions {
  /** A getter, because the shard map is not loaded yet when this object is created. */
  readonly shards: () => Shards;
  readonly keys: Keys;
  readonly connection: RedisServers;
  /** The setting JOURNAL_HIGH_WATER, in entries. */
  readonly highWater: number;
  /** The setting JOURNAL_BYTES_MAX, in bytes. */
  readonly bytesMax: number;
  /** A getter, because the script runner does not exist yet when this object is created. */
  readonly runner: () => ScriptRunner;
  /**
   * Whether a seal that a role left is accepted as proof that Redis lost nothing. Set this only if Redis cannot have
   * started from an older copy of its data.
   */
  readonly trustSeals?: boolean;
  readonly time?: Time;
  readonly random?: Random;
  /** The installation's id, which each partition stores in Redis. */
  readonly installation?: () => string;
  /**
   * Called for each partition that continues under a raised incarnation. Not called when a partition is opened for the
   * first time.
   */
  readonly onRaised?: (raised: RaisedPartition) => void;
}

export interface RaisedPartition {
  readonly partition: number;
  /**
   * True if Redis has certainly lost changes, because Postgres has changes that Redis lacks. False if a loss is only
   * possible. The changes that Postgres has are safe in both cases.
   */
  readonly proven: boolean;
}

const raceTriesMax = 20;

const seenIncarnations = statement(
  'seen_incarnations',
  `select partition, incarnation, flushed_version, flushed_at, rewrite_after is not null as rewriting
   from partitions where partition = any($1::int[])`,
);

/**
 * Records that Redis lost data. If a loss was recorded in the last 10 minutes, adds the new partitions to the number in
 * that record, because nodes discover a loss one partition at a time.
 */
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
 * Registers a partition's next incarnation before it is used, and gives this incarnation to only one caller. If the row
 * was raised since the caller read it, the row stays unchanged, because another node is working on the partition. If a
 * hundred nodes detect the same failover, the incarnation is thus raised only once.
 *
 * Also compares the watermark, so that the incarnation of a row that was restored from a backup does not get below the
 * incarnation of the partition's entities. If a flush has raised the watermark above `harmless` since the caller read
 * the row, the row stays unchanged too, because Redis may lack that flush.
 */
export const raiseIncarnations = statement(
  'raise_incarnations',
  `with wanted as (
     select * from unnest($1::int[], $2::int[], $3::int[], $5::bigint[]) as w (partition, exceeds, seen, harmless)
   )
   insert into partitions as p (partition, incarnation, run_id)
   select partition, exceeds + 1, $4 from wanted order by partition
   on conflict (partition) do update set
     incarnation = greatest(p.incarnation, excluded.incarnation - 1, (p.flushed_version >> 40)::int) + 1,
     run_id = excluded.run_id,
     seal = null
   where (select p.incarnation = seen and p.flushed_version <= harmless from wanted w where w.partition = p.partition)
     and p.left_at is null
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
 * Claims the seals that prove that this Redis lost nothing. A seal is valid for a single run of Redis, so that a later
 * start from a copy of the sealed data cannot use it. An operator's seal is also refused if Postgres was restarted
 * since, because both servers may then have been restored from backups.
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
  /** The greatest version that Redis is known to have assigned. */
  readonly highest: number;
}

interface Seen {
  partition: number;
  incarnation: number;
  /** The watermark of the partition. Every version up to the watermark is in Postgres or in quarantine. */
  flushed_version: number;
  flushed_at: Date | null;
  /** Whether Redis may still have changes that Postgres has lost. */
  rewriting: boolean;
}

/** A closed partition. `seen` is the partition's row in Postgres. It is absent if the partition was never opened. */
interface Closed extends Behind {
  readonly seen: Seen | undefined;
}

interface Raised {
  partition: number;
  incarnation: number;
  /** The number of the partition's last post in Postgres. */
  post: number;
}

/** Returns whether Redis has lost flushed changes: Postgres has a version that is above every version in Redis. */
const lacksChanges = ({ seen, highest }: Closed) => (seen?.flushed_version ?? 0) > highest;

const self = (partition: number) => partition;

/** Opens partitions in Redis. The script runner calls `recover` when a script answers `stale_run`. */
export class Recovery {
  readonly #options: RecoveryOptions;
  readonly #time: Time;
  readonly #random: Random;
  readonly #forgetter: Forgetter;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(options: RecoveryOptions) {
    this.#options = options;
    this.#time = options.time ?? systemTime;
    this.#random = options.random ?? systemRandom;
    this.#forgetter = new Forgetter(options);
  }

  /**
   * Opens a partition for the Redis with this run id. Does nothing if the partition is open, or if the connection now
   * leads to another Redis. Errors: `unavailable` while Postgres or Redis is unavailable.
   */
  recover(partition: number, runId: string): Promise<void> {
    const id = `${partition} ${runId}`;
    let recovery = this.#underWay.get(id);
    if (!recovery) {
      recovery = this.openAll([partition], runId).finally(() => this.#underWay.delete(id));
      this.#underWay.set(id, recovery);
    }
    return recovery;
  }

  /** Opens many partitions as `recover` does, but with fewer statements. A node calls this function when it starts. */
  async openAll(partitions: readonly number[], runId: string): Promise<void> {
    try {
      const behind = (await this.#read(partitions, runId)).map((b) => b.partition);
      let closed = await this.#unseal(behind, runId);
      for (let tries = 1; closed.length > 0; tries++) {
        if (tries > raceTriesMax) throw unavailable();
        closed = await this.#raiseAll(closed, runId);
      }
    } catch (error) {
      throw isUnavailable(error) ? unavailable() : error;
    }
  }

  /**
   * Closes partitions to changes, as the last step of a clean Redis shutdown. The seal tells the next start that
   * nothing was lost. With `byOperator`, every node accepts the seal for limits.redis_seal_age_ms_max, as long as the
   * same Postgres server keeps running. Error: `unavailable`. After this error, the next start assumes that Redis may
   * have lost changes, as after a crash.
   */
  async seal(partitions: readonly number[], byOperator = false): Promise<void> {
    const { keys, runner } = this.#options;
    const seal = this.#random.uuid();
    await Promise.all(
      partitions.map((partition) =>
        runner().call('partition/seal', partition, { meta: keys.meta(partition) }, { seal }),
      ),
    );
    await this.#askShards(partitions, self, (pool, own) => pool.query(noteSeal, [own, seal, byOperator]));
  }

  /**
   * Runs a query on each shard in parallel. Each query gets the items whose partition is in that shard. Throws the
   * error of any shard.
   */
  async #askShards<T, R extends object>(
    items: readonly T[],
    partitionOf: (item: T) => number,
    ask: (pool: Pool, own: readonly T[]) => Promise<{ readonly rows: R[] }>,
  ): Promise<R[]> {
    const asked = [...byShard(this.#options.shards(), items, partitionOf)];
    return (await Promise.all(asked.map(async ([{ pool }, own]) => (await ask(pool, own)).rows))).flat();
  }

  /**
   * Raises the incarnations of partitions in Redis. Returns the partitions that this call opened and those that are
   * still closed.
   */
  async #apply(wanted: readonly Raised[], runId: string): Promise<{ opened: Set<number>; closed: Behind[] }> {
    const { keys, runner, installation = () => '', highWater, bytesMax } = this.#options;
    const opened = new Set<number>();
    const closed: Behind[] = [];
    await Promise.all(
      wanted.map(async ({ partition, incarnation, post }) => {
        const result = await runner().call(
          'partition/recover',
          partition,
          { meta: keys.meta(partition), journal: keys.journal(partition) },
          {
            expected: runId,
            incarnation,
            post,
            high_water: highWater,
            bytes_max: bytesMax,
            installation: installation(),
          },
        );
        if (result.status === 'behind') closed.push({ partition, highest: result.highest });
        else if (result.status === 'ok' && result.opened) opened.add(partition);
      }),
    );
    return { opened, closed };
  }

  /**
   * Returns the given partitions that are closed. Changes nothing, because the script only reads if the incarnation is
   * 0.
   */
  async #read(partitions: readonly number[], runId: string): Promise<Behind[]> {
    const wanted = partitions.map((partition) => ({ partition, incarnation: 0, post: 0 }));
    return (await this.#apply(wanted, runId)).closed;
  }

  /** Opens the partitions whose seal proves that nothing was lost. Returns the other partitions. */
  async #unseal(closed: readonly number[], runId: string): Promise<number[]> {
    const { keys, runner, trustSeals = false, highWater, bytesMax } = this.#options;
    const rows = await this.#askShards(closed, self, (pool, own) =>
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

  /** Opens partitions under raised incarnations. Returns the partitions that are still closed. */
  async #raiseAll(partitions: readonly number[], runId: string): Promise<number[]> {
    const rows = await this.#askShards(partitions, self, (pool, own) =>
      pool.query<Seen>(seenIncarnations, [own]),
    );
    const seen = new Map(rows.map((row) => [row.partition, row]));
    // Reads Redis only after Postgres. If another node has raised an incarnation by then, Redis already shows the new
    // incarnation, or the statements below detect it.
    const behind = await this.#read(partitions, runId);
    const closed = behind.map((b) => ({ ...b, seen: seen.get(b.partition) }));
    const raised = await this.#raise(await this.#forgetOlder(closed, runId), runId);
    const applied = await this.#apply(raised, runId);
    await this.#reportLoss(closed.filter((b) => applied.opened.has(b.partition)));
    const mine = new Set(raised.map((r) => r.partition));
    const lost = closed.filter((b) => !mine.has(b.partition));
    if (lost.length > 0) await this.#time.sleep(20 + this.#random.number() * 40);
    return [...applied.closed, ...lost].map((b) => b.partition);
  }

  /**
   * Removes journaled entities from each Redis that lost flushed changes, because Postgres has the same or a later
   * version of each of them. Returns the partitions that may now be opened. Another node works on all other partitions.
   * Removes nothing while Postgres itself lacks changes, because it was restored to an earlier state and the rewrite
   * has not finished. The entities then stay in Redis until the rewrite, although some of them are outdated.
   */
  async #forgetOlder(closed: readonly Closed[], runId: string): Promise<readonly Closed[]> {
    const isOlder = (b: Closed) => lacksChanges(b) && b.seen?.rewriting !== true;
    const older = closed.filter(isOlder).map((b) => b.partition);
    if (older.length === 0) return closed;
    const forgotten = await this.#forgetter.forget(older, runId);
    return closed.filter((b) => !isOlder(b) || forgotten.has(b.partition));
  }

  /** Registers the next incarnations. The result omits the partitions that another node has just raised. */
  async #raise(closed: readonly Closed[], runId: string): Promise<Raised[]> {
    const rows = await this.#askShards(
      closed,
      (b) => b.partition,
      (pool, own) =>
        pool.transaction((tx) =>
          tx.query<Raised>(raiseIncarnations, [
            own.map((b) => b.partition),
            own.map((b) => Math.floor(b.highest / storeLimits.versions_per_incarnation)),
            own.map((b) => b.seen?.incarnation ?? 0),
            runId,
            own.map((b) => (lacksChanges(b) ? Number.MAX_SAFE_INTEGER : b.highest)),
          ]),
        ),
    );
    const last = rows.find(({ incarnation }) => incarnation >= limits.incarnations_max);
    if (last === undefined) return rows;
    throw new Error(`partition ${last.partition} has used up its ${limits.incarnations_max} incarnations`);
  }

  async #reportLoss(raised: readonly Closed[]): Promise<void> {
    for (const each of raised)
      if (each.seen) this.#options.onRaised?.({ partition: each.partition, proven: lacksChanges(each) });
    const lost = raised.filter(lacksChanges);
    if (lost.length === 0) return;
    const flushed = lost.flatMap(({ seen }) => seen?.flushed_at?.getTime() ?? []);
    await this.#options
      .shards()
      .control.pool.query(noteLoss, [
        lost.length,
        flushed.length > 0 ? new Date(Math.max(...flushed)) : null,
      ]);
  }
}
