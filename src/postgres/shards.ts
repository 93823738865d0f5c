/**
 * Databases of written-behind data. Each partition is in one of them, according to the map in the control database.
 * All other tables are in the control database, which is shard 0 and also has the partitions that the map does not
 * list. No statement and no transaction uses two shards, or tables of both kinds.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../errors.js';
import { limits } from '../limits.js';
import { type ControlMarks, type RaisedMark, raiseMark } from './messages/history.js';
import { type Pool, type Queryable, statement } from './pool.js';
import type { Database } from './sql.js';

/** Tables whose rows are divided by partition, each with the column that determines a row's partition. */
export const shardedTables: Readonly<Record<string, 'chat_id' | 'bot_id' | 'partition'>> = {
  messages: 'chat_id',
  chat_sequences: 'chat_id',
  chat_pins: 'chat_id',
  posts: 'partition',
  post_sequences: 'partition',
  post_reactions: 'partition',
  post_tallies: 'partition',
  dead_updates: 'bot_id',
  bot_update_masks: 'bot_id',
  delivery_attempts: 'bot_id',
  delivery_failures: 'bot_id',
  delivery_counts: 'bot_id',
  webhook_replays: 'bot_id',
  quarantine: 'partition',
  partitions: 'partition',
};

export interface Shard {
  /** Id of the shard; 0 is the control database. */
  readonly id: number;
  readonly url: string;
  readonly pool: Pool;
  readonly db: Database;
  /** Detects that this database was restored to an earlier state. Absent in tests that do not need it. */
  readonly history?: (ControlMarks & { rewriting(): number }) | undefined;
}

export interface Shards {
  /** All shards, ascending by id: the control database comes first. */
  readonly all: readonly Shard[];
  readonly control: Shard;
  /**
   * The shard of a partition. Error: `unavailable` while the map may be outdated, or names a shard that is not
   * configured.
   */
  of(partition: number): Shard;
  /** Partitions of a shard, as the map was last read. */
  owned(shard: Pick<Shard, 'id'>): readonly number[];
  /** Whether writes to a partition are paused now. */
  isPaused(partition: number): boolean;
  /** Epoch of the map that this process follows; 0 if partitions were never divided. */
  epoch(): number;
}

/** Shards of an installation that has all data in one database. */
export function oneShard(pool: Pool, db: Database, partitions: number, history?: Shard['history']): Shards {
  const control: Shard = { id: 0, url: '', pool, db, history };
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  return {
    ...{ all: [control], control },
    of: () => control,
    owned: () => all,
    isPaused: () => false,
    epoch: () => 0,
  };
}

interface Divided<S> {
  readonly all: readonly S[];
  owned(shard: Pick<Shard, 'id'>): readonly number[];
}

/** Shards that have partitions now. */
export const holding = <S extends Pick<Shard, 'id'>>(shards: Divided<S>): S[] =>
  shards.all.filter((shard) => shards.owned(shard).length > 0);

/** Groups items by the shard of their partition. */
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
 * Reads one page of rows that are spread over several shards, in their common order: asks each shard for a page and
 * keeps the first rows of all. A shard is asked for its own partitions only, because it may still have rows of a
 * partition that was moved.
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
  /** Partitions that are not in the control database, or that are paused. */
  readonly rows: readonly MapRow[];
}

const readEpoch = statement(
  'shard_epoch',
  "select coalesce((select value::int from installation where name = 'shard_epoch'), 0) as epoch",
);
/** Reads the epoch and the rows in one statement, so that they are from one instant. */
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
 * Changes the map; returns its new epoch. With `marks`, Redis learns of the change before this returns. `check` runs
 * in the transaction and throws to prevent the change.
 */
export async function changeMap(
  control: Pool,
  rows: readonly MapRow[],
  marks?: ControlMarks,
  check: (tx: Queryable) => Promise<void> = async () => {},
): Promise<number> {
  const { epoch, raised } = await control.transaction(async (tx) => {
    await check(tx);
    // The epoch is raised first, so that a concurrent change waits here.
    const epoch = (await tx.query<{ epoch: number }>(raiseEpoch)).rows[0]?.epoch ?? 0;
    for (const { partition, shard, paused } of rows) await tx.query(putRow, [partition, shard, paused]);
    if (marks === undefined) return { epoch, raised: [] };
    const { statement, values } = raiseMark(tx.server);
    return { epoch, raised: (await tx.query<RaisedMark>(statement, values)).rows };
  });
  await marks?.note(raised);
  return epoch;
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

/** Additional time for which a process may trust its map, for clocks that run at different speeds. */
const trustMargin_ms = 500;
const acknowledgePoll_ms = 50;

/**
 * Waits until no process follows a map older than this committed epoch: each process has reported it, or has been
 * silent for longer than it trusts its map. Errors: those of Postgres.
 */
export async function awaitEpoch(control: Pool, epoch: number): Promise<void> {
  const began = performance.now();
  for (;;) {
    const { rows } = await control.query<{ node: string; trust_ms: number }>(laggingNodes, [epoch]);
    if (rows.length === 0) return;
    const waited = performance.now() - began;
    const silent = rows.filter(({ trust_ms }) => waited > trust_ms + trustMargin_ms).map(({ node }) => node);
    // A process that returns reports again before it follows any map.
    if (silent.length > 0) await control.query(dropNodes, [silent, epoch]);
    if (silent.length < rows.length) await sleep(acknowledgePoll_ms);
  }
}

export interface FollowOptions {
  /** All configured shards, the control database first. */
  readonly all: readonly Shard[];
  readonly partitions: number;
  readonly map: ShardMap;
  /** Time at which the map was requested, by performance.now(). */
  readonly at: number;
  /** Name under which this process reports the epoch that it follows; without a name it reports none. */
  readonly node?: string;
  /** Called when the map cannot be read, and when the shard of a partition is not configured. */
  readonly onError: (error: Error) => void;
}

export interface FollowedShards extends Shards {
  /** Reads the map now. */
  look(): Promise<void>;
  /** Stops following the map. */
  stop(): Promise<void>;
}

/** How often a process with these databases checks the epoch, and how long it trusts a map after a check. */
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
 * Announces that a process is about to read the map, so that a change of the map waits for it. Call this before the
 * first read.
 */
export async function joinMap(all: readonly [Shard, ...Shard[]], node: string): Promise<void> {
  await all[0].pool.query(forgetOld);
  await all[0].pool.query(report, reportOf(node, -1, all));
}

/**
 * Follows the map: checks its epoch every limits.shard_map_look_ms (every limits.shard_map_idle_look_ms without
 * DATABASE_SHARDS), and reads the map when the epoch was raised. The first check reports the initial map.
 */
export function followShards({ all, partitions, map, at, node, onError }: FollowOptions): FollowedShards {
  const control = all[0] as Shard;
  const { every, trust } = looksOf(all);
  const byId = new Map(all.map((shard) => [shard.id, shard]));
  let places = new Map<number, MapRow>();
  let owned = new Map<number, number[]>();
  let epoch = 0;
  let readAt = at;

  function take(read: ShardMap): void {
    epoch = read.epoch;
    places = new Map(read.rows.map((row) => [row.partition, row]));
    owned = new Map(all.map(({ id }) => [id, []]));
    const missing = new Set<number>();
    for (let partition = 0; partition < partitions; partition++) {
      const id = places.get(partition)?.shard ?? 0;
      if (byId.has(id)) owned.get(id)?.push(partition);
      else missing.add(id);
    }
    if (missing.size > 0)
      onError(new Error(`DATABASE_SHARDS lacks ${[...missing].join(', ')}, where partitions lie`));
  }
  take(map);

  let reported: number | undefined;
  async function look(): Promise<void> {
    const asked = performance.now();
    if ((await loadEpoch(control.pool)) !== epoch) take(await loadMap(control.pool));
    // The report comes before the map is trusted again, because a change of the map may have stopped waiting for this
    // process.
    if (node !== undefined && (reported !== epoch || asked - readAt > trust)) {
      await control.pool.query(report, reportOf(node, epoch, all));
      reported = epoch;
    }
    readAt = asked;
  }

  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  function lookIn(ms: number): void {
    if (stopped) return;
    timer = setTimeout(async () => {
      const failed = await look().then(
        () => false,
        (error) => {
          onError(error);
          return true;
        },
      );
      // After a failure the next check comes soon, because calls that need a shard are refused once the map is no
      // longer trusted.
      lookIn(failed ? limits.shard_map_look_ms : every);
    }, ms);
    timer.unref();
  }
  lookIn(every);

  const refuse = () => {
    throw new ApiError('unavailable', { retry_after: 1 });
  };
  return {
    ...{ all, control, look },
    of(partition) {
      // A move of a partition waits until every process has read the new map or no longer trusts the old one.
      if (performance.now() - readAt > trust) refuse();
      return byId.get(places.get(partition)?.shard ?? 0) ?? refuse();
    },
    owned: ({ id }) => owned.get(id) ?? [],
    isPaused: (partition) => places.get(partition)?.paused ?? false,
    epoch: () => epoch,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      if (node !== undefined) await control.pool.query(forget, [node]).catch(() => undefined);
    },
  };
}
