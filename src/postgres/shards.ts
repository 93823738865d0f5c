/**
 * Defines the databases (shards) that contain flushed data. The shard map in the control database assigns each
 * partition to one shard. The control database is shard 0. It also contains all tables that are not divided, and the
 * partitions that the map does not list. No statement or transaction uses two shards, or both divided tables and other
 * tables.
 */

import { ApiError } from '../errors.js';
import { systemTime, type Time, type Timer } from '../time.js';
import { postgresLimits as limits } from './limits.js';
import { type ControlMarks, markedTransaction } from './marks.js';
import { type Pool, type Queryable, statement } from './pool.js';
import type { Database, ShardDatabase } from './sql.js';

/**
 * The tables whose rows are divided among the shards. Each table is listed with the column that determines a row's
 * partition.
 */
export const shardedTables: Readonly<Record<string, 'chat_id' | 'bot_id' | 'partition'>> = {
  messages: 'chat_id',
  chat_sequences: 'chat_id',
  chat_pins: 'chat_id',
  posts: 'partition',
  post_sequences: 'partition',
  post_reactions: 'partition',
  post_tallies: 'partition',
  polls: 'partition',
  poll_results: 'partition',
  poll_votes: 'partition',
  dead_updates: 'bot_id',
  bot_update_masks: 'bot_id',
  delivery_attempts: 'bot_id',
  delivery_failures: 'bot_id',
  delivery_counts: 'bot_id',
  kept_updates: 'bot_id',
  webhook_replays: 'bot_id',
  quarantine: 'partition',
  partitions: 'partition',
};

export interface Shard {
  /** The id of the shard. 0 is the control database. */
  readonly id: number;
  readonly url: string;
  readonly pool: Pool;
  readonly db: ShardDatabase;
  /** Detects that this database was restored to an earlier state. Absent in tests that do not need it. */
  readonly history?: (ControlMarks & { rewriting(): number }) | undefined;
}

export interface Shards {
  /** All shards by ascending id, so the control database comes first. */
  readonly all: readonly Shard[];
  readonly control: Shard;
  /**
   * Returns the shard of a partition. Error: `unavailable` while the map may be outdated, or if the shard is not
   * configured.
   */
  of(partition: number): Shard;
  /**
   * Returns the database that contains the rows of these partitions. Callers must pass at least one partition, and all
   * partitions must be in one shard. Statements fail with `unavailable` if a partition was moved and this process still
   * uses an old shard map.
   */
  at(...partitions: readonly number[]): Database;
  /** Returns the partitions that this process's copy of the shard map assigns to a shard. */
  owned(shard: Pick<Shard, 'id'>): readonly number[];
  isPaused(partition: number): boolean;
  /** Returns the epoch of the map, or 0 if the map was never changed. */
  epoch(): number;
}

export function oneShard(
  pool: Pool,
  db: ShardDatabase,
  partitions: number,
  history?: Shard['history'],
): Shards {
  const control: Shard = { id: 0, url: '', pool, db, history };
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  return {
    ...{ all: [control], control },
    of: () => control,
    at: () => db,
    owned: () => all,
    isPaused: () => false,
    epoch: () => 0,
  };
}

interface Divided<S> {
  readonly all: readonly S[];
  owned(shard: Pick<Shard, 'id'>): readonly number[];
}

export const holding = <S extends Pick<Shard, 'id'>>(shards: Divided<S>): S[] =>
  shards.all.filter((shard) => shards.owned(shard).length > 0);

export function byShard<S, T>(
  shards: { of(partition: number): S },
  items: readonly T[],
  partitionOf: (item: T) => number,
): Map<S, T[]> {
  const found = new Map<S, T[]>();
  for (const item of items) {
    const shard = shards.of(partitionOf(item));
    const own = found.get(shard);
    if (own) own.push(item);
    else found.set(shard, [item]);
  }
  return found;
}

/**
 * Loads one page of rows that are spread over several shards, in one order. Requests a page from each shard, merges the
 * pages, and keeps the first `limit` rows. Asks each shard only for the partitions that the map assigns to it, because
 * a shard may still have rows of partitions that were moved away.
 */
export async function pageOfAll<S extends Pick<Shard, 'id'>, T>(
  shards: Divided<S>,
  ask: (shard: S, partitions: readonly number[]) => Promise<readonly T[]>,
  compare: (a: T, b: T) => number,
  limit: number,
): Promise<T[]> {
  const pages = await Promise.all(holding(shards).map((shard) => ask(shard, shards.owned(shard))));
  return pages.flat().sort(compare).slice(0, limit);
}

export interface MapRow {
  readonly partition: number;
  readonly shard: number;
  readonly paused: boolean;
}

export interface ShardMap {
  readonly epoch: number;
  readonly rows: readonly MapRow[];
}

const readEpoch = statement(
  'shard_epoch',
  "select coalesce((select value::int from installation where name = 'shard_epoch'), 0) as epoch",
);
/** Loads the epoch and the rows of the shard map in one statement, so that the rows belong to this epoch. */
const readMap = statement(
  'shard_map',
  `select coalesce((select value::int from installation where name = 'shard_epoch'), 0) as epoch,
     coalesce((select json_agg(m) from shard_map m), '[]') as rows`,
);

export async function loadEpoch(sql: Queryable): Promise<number> {
  return (await sql.query<{ epoch: number }>(readEpoch)).rows[0]?.epoch ?? 0;
}

export async function loadMap(sql: Queryable): Promise<ShardMap> {
  return (await sql.query<ShardMap>(readMap)).rows[0] ?? { epoch: 0, rows: [] };
}

const raiseEpoch = statement(
  'raise_shard_epoch',
  `insert into installation as i (name, value) values ('shard_epoch', '1')
   on conflict (name) do update set value = (i.value::int + 1)::text returning value::int as epoch`,
);
const putRow = statement(
  'put_shard_map',
  `insert into shard_map (partition, shard, paused) values ($1, $2, $3)
   on conflict (partition) do update set shard = excluded.shard, paused = excluded.paused`,
);

/**
 * Changes the map and returns its new epoch. If `marks` is given, reports the change to Redis before returning. `check`
 * runs in the transaction and throws to prevent the change.
 */
export function changeMap(
  control: Pool,
  rows: readonly MapRow[],
  marks?: ControlMarks,
  check: (tx: Queryable) => Promise<void> = async () => {},
): Promise<number> {
  return markedTransaction(control, marks, async (tx) => {
    await check(tx);
    // Raises the epoch of the shard map first, so that a concurrent change of the map waits for this statement.
    const epoch = (await tx.query<{ epoch: number }>(raiseEpoch)).rows[0]?.epoch ?? 0;
    for (const { partition, shard, paused } of rows) await tx.query(putRow, [partition, shard, paused]);
    return epoch;
  });
}

const report = statement(
  'report_shard_epoch',
  `insert into shard_nodes (node, epoch, shards, trust_ms) values ($1, $2, $3, $4)
   on conflict (node) do update set epoch = excluded.epoch, shards = excluded.shards,
     trust_ms = excluded.trust_ms, at = now()`,
);
const forget = statement('forget_shard_node', 'delete from shard_nodes where node = $1');
const laggingNodes = statement(
  'lagging_shard_nodes',
  'select node, trust_ms from shard_nodes where epoch <> $1',
);
const dropNodes = statement(
  'drop_shard_nodes',
  'delete from shard_nodes where node = any($1::text[]) and epoch <> $2',
);

/**
 * A safety margin, because the clock of another process may run slower. The margin is added to the time for which that
 * process may use its shard map.
 */
const trustMargin_ms = 500;
const acknowledgePoll_ms = 50;

/**
 * Waits until no process uses a shard map that is older than this committed epoch. The wait for a process ends when the
 * process has reported the epoch, or has been silent for longer than it may use its map. Throws the errors of Postgres.
 */
export async function awaitEpoch(control: Pool, epoch: number, time = systemTime): Promise<void> {
  const began = time.monotonic();
  for (;;) {
    const { rows } = await control.query<{ node: string; trust_ms: number }>(laggingNodes, [epoch]);
    if (rows.length === 0) return;
    const waited = time.monotonic() - began;
    const silent = rows.filter(({ trust_ms }) => waited > trust_ms + trustMargin_ms).map(({ node }) => node);
    // Stops waiting for silent processes. A silent process that still runs reports its epoch before it uses a shard map
    // again.
    if (silent.length > 0) await control.query(dropNodes, [silent, epoch]);
    if (silent.length < rows.length) await time.sleep(acknowledgePoll_ms);
  }
}

export interface FollowOptions {
  /** All configured shards. The control database comes first. */
  readonly all: readonly Shard[];
  readonly partitions: number;
  readonly map: ShardMap;
  /** The monotonic time in ms at which the map was requested. */
  readonly at: number;
  /**
   * The name under which this process reports the epoch of its shard map. Without a name, the process reports nothing.
   */
  readonly node?: string;
  readonly time?: Time;
  /** Called if the shard map cannot be read, or if the settings lack a shard that has partitions. */
  readonly onError: (error: Error) => void;
}

export interface FollowedShards extends Shards {
  look(): Promise<void>;
  stop(): Promise<void>;
}

/** Returns how often a process checks the epoch of the shard map, and for how long after a check it may use its map. */
const looksOf = (all: readonly unknown[]) =>
  all.length > 1
    ? { every: limits.shard_map_look_ms, trust: limits.shard_map_age_ms_max }
    : { every: limits.shard_map_idle_look_ms, trust: limits.shard_map_idle_age_ms_max };

const reportOf = (node: string, epoch: number, all: readonly Shard[]) => [
  ...[node, epoch, all.map(({ id }) => id)],
  looksOf(all).trust,
];

const forgetOld = statement(
  'forget_old_shard_nodes',
  "delete from shard_nodes where at < now() - interval '1 hour' and node not in (select node from redis_nodes)",
);

/**
 * Announces that a process is about to load the shard map, so that changes of the map wait for this process. Must be
 * called before the map is loaded for the first time.
 */
export async function joinMap(all: readonly [Shard, ...Shard[]], node: string): Promise<void> {
  await all[0].pool.query(forgetOld);
  await all[0].pool.query(report, reportOf(node, -1, all));
}

function divisionOf({ epoch, rows }: ShardMap, { all, partitions, onError }: FollowOptions) {
  const places = new Map(rows.map((row) => [row.partition, row]));
  const owned = new Map<number, number[]>(all.map(({ id }) => [id, []]));
  const missing = new Set<number>();
  for (let partition = 0; partition < partitions; partition++) {
    const id = places.get(partition)?.shard ?? 0;
    if (!owned.get(id)?.push(partition)) missing.add(id);
  }
  if (missing.size > 0)
    onError(new Error(`DATABASE_SHARDS lacks ${[...missing].join(', ')}, where partitions lie`));
  return { epoch, places, owned };
}

/**
 * Keeps this process's shard map current. Checks the map's epoch every limits.shard_map_look_ms (every
 * limits.shard_map_idle_look_ms without DATABASE_SHARDS), and loads the map again if the epoch has changed. Reports the
 * epoch of the initial map at the first check.
 */
export function followShards(options: FollowOptions): FollowedShards {
  const { all, node, onError, time = systemTime } = options;
  const control = all[0] as Shard;
  const { every, trust } = looksOf(all);
  const byId = new Map(all.map((shard) => [shard.id, shard]));
  let followed = divisionOf(options.map, options);
  let readAt = options.at;
  let reported: number | undefined;
  let timer: Timer | undefined;
  let stopped = false;

  async function look(): Promise<void> {
    const asked = time.monotonic();
    if ((await loadEpoch(control.pool)) !== followed.epoch)
      followed = divisionOf(await loadMap(control.pool), options);
    const { epoch } = followed;
    // Reports the epoch before this process uses the shard map. After a long pause, the process must report again,
    // because `awaitEpoch` may have stopped waiting for it.
    if (node !== undefined && (reported !== epoch || asked - readAt > trust)) {
      await control.pool.query(report, reportOf(node, epoch, all));
      reported = epoch;
    }
    readAt = asked;
  }

  function lookIn(ms: number): void {
    if (stopped) return;
    const failed = (error: Error) => {
      onError(error);
      // Checks again soon, because every call that needs a shard is refused once the shard map is too old.
      lookIn(limits.shard_map_look_ms);
    };
    timer = time.after(ms, () => look().then(() => lookIn(every), failed)).unref();
  }
  lookIn(every);

  const refuse = () => {
    throw new ApiError('unavailable', { retry_after: 1 });
  };
  function of(partition: number): Shard {
    // Refuses calls if the shard map is too old. A move of a partition waits until every process has either loaded the
    // new map or stopped using its old map.
    if (time.monotonic() - readAt > trust) refuse();
    return byId.get(followed.places.get(partition)?.shard ?? 0) ?? refuse();
  }
  return {
    ...{ all, control, look, of },
    // The database also checks that it serves the partitions. This process may use an outdated shard map without
    // noticing, because its clock stops while its virtual machine is suspended.
    at(...own) {
      const { db } = of(own[0] as number);
      return all.length > 1 ? db.whileCurrent(own) : db;
    },
    owned: ({ id }) => followed.owned.get(id) ?? [],
    isPaused: (partition) => followed.places.get(partition)?.paused ?? false,
    epoch: () => followed.epoch,
    async stop() {
      stopped = true;
      time.cancel(timer);
      if (node !== undefined) await control.pool.query(forget, [node]).catch(() => undefined);
    },
  };
}
