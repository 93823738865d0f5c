/**
 * Opens the databases that the settings name and checks the identity of each database. Keeps the shard map of the
 * control database current.
 */

import type { Config } from '../config/config.js';
import { History } from '../journal/history.js';
import type { Identity } from '../journal/identity.js';
import { loadIdentity } from '../postgres/identity.js';
import { databaseProblem } from '../postgres/migrate.js';
import { createPool, type Pool } from '../postgres/pool.js';
import {
  changeMap,
  type FollowedShards,
  followShards,
  joinMap,
  loadEpoch,
  loadMap,
  type Shard,
} from '../postgres/shards.js';
import { asDatabase, plainSql } from '../postgres/sql.js';
import type { Random } from '../random.js';
import type { RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';
import type { Time } from '../time.js';
import { StartError } from './installation.js';
import type { PostgresEvents } from './postgres_events.js';

export interface ShardUrl {
  readonly id: number;
  readonly url: string;
}

/** Returns the URLs of the databases, the control database first. */
export const shardUrls = (
  config: Pick<Config, 'DATABASE_SHARDS'> & { readonly DATABASE_URL: string },
): ShardUrl[] => [{ id: 0, url: config.DATABASE_URL }, ...config.DATABASE_SHARDS];

/** Returns the configured standbys. Throws a StartError if a standby belongs to a database that is not configured. */
export function standbysOf(
  config: Pick<Config, 'DATABASE_SHARDS' | 'DATABASE_REPLICA_URLS'>,
): Config['DATABASE_REPLICA_URLS'] {
  const known = new Set([0, ...config.DATABASE_SHARDS.map(({ id }) => id)]);
  const stray = config.DATABASE_REPLICA_URLS.find(({ shard }) => !known.has(shard));
  if (stray === undefined) return config.DATABASE_REPLICA_URLS;
  throw new StartError(
    `DATABASE_REPLICA_URLS has a standby of database ${stray.shard}, which DATABASE_SHARDS does not name`,
  );
}

export const shardName = (id: number): string => (id === 0 ? 'DATABASE_URL' : `DATABASE_SHARDS ${id}`);

/**
 * Throws a StartError if this program cannot use a database's schema. If `waits` is true and the schema is outdated,
 * throws an ordinary error instead, because a migration may be running.
 */
export async function checkSchemas(urls: readonly ShardUrl[], waits: boolean): Promise<void> {
  for (const { id, url } of urls) {
    const problem = await databaseProblem(url);
    if (problem === null) continue;
    const text = id === 0 ? problem : `${shardName(id)}: ${problem}`;
    throw waits && problem.includes('petrel migrate') ? new Error(text) : new StartError(text);
  }
}

const noteOf = (pool: Pool) => plainSql(pool).firstValue<string>`
  select value from installation where name = 'SHARD'`;

async function withDatabases(
  urls: readonly ShardUrl[],
  name: string,
  work: (
    control: Pool,
    others: ReadonlyArray<{ id: number; pool: Pool }>,
    installation: string,
  ) => Promise<void>,
): Promise<void> {
  const all = urls.map(({ id, url }) => ({ id, pool: createPool({ url, max: 1, name }) }));
  try {
    const [control, ...others] = all as [(typeof all)[number], ...typeof all];
    await work(control.pool, others, (await loadIdentity(control.pool)).id);
  } finally {
    await Promise.all(all.map(({ pool }) => pool.close()));
  }
}

/** Refuses a database that belongs to another installation, or that is not the shard that the settings say. */
function compareNote(id: number, installation: string, found: string): void {
  if (found === `${id} ${installation}`) return;
  const [number, of] = found.split(' ');
  const is = of === installation ? `shard ${number}` : 'a shard of another installation';
  throw new StartError(`${shardName(id)} is ${is}`);
}

/**
 * Compares the shard number recorded in each database with the settings. This must come before the check for lost
 * transactions, because a wrong database would look like one that lost transactions. Throws a StartError or an error of
 * Postgres.
 */
export async function checkShards(urls: readonly ShardUrl[]): Promise<void> {
  if (urls.length === 1) return;
  await withDatabases(urls, 'check', async (_, others, installation) => {
    for (const { id, pool } of others) {
      const found = await noteOf(pool);
      // Throws an ordinary error, not a StartError, because a running migration may be about to record the shard
      // number.
      if (found === undefined)
        throw new Error(`${shardName(id)} is not a shard of this installation yet: run "petrel migrate"`);
      compareNote(id, installation, found);
    }
  });
}

/**
 * Records its shard number in each database. In a new installation, divides the partitions evenly among
 * DATABASE_SHARDS. In an existing installation, partitions stay where they are until `petrel shards move`. Throws a
 * StartError or an error of Postgres.
 */
export async function noteShards(
  urls: readonly ShardUrl[],
  partitions: number,
  say: (line: string) => void,
): Promise<void> {
  if (urls.length === 1) return;
  await withDatabases(urls, 'migrate', async (control, others, installation) => {
    for (const { id, pool } of others) {
      const found = await noteOf(pool);
      if (found !== undefined) compareNote(id, installation, found);
    }
    // Divides the partitions before the shard numbers are recorded, because nodes start to serve as soon as every
    // database has recorded its shard number.
    if ((await loadEpoch(control)) === 0) await divide(control, urls.slice(1), partitions, say);
    for (const { id, pool } of others)
      await plainSql(pool).run`
        insert into installation (name, value) values ('SHARD', ${`${id} ${installation}`})
        on conflict (name) do nothing`;
  });
}

async function divide(
  control: Pool,
  shards: readonly ShardUrl[],
  partitions: number,
  say: (line: string) => void,
): Promise<void> {
  const fresh = !(await plainSql(control).some`select from installation where name = 'TOKEN_ROOT'`);
  const all = Array.from({ length: fresh ? partitions : 0 }, (_, partition) => partition);
  const rows = all.map((partition) => ({
    ...{ partition, paused: false },
    shard: (shards[partition % shards.length] as ShardUrl).id,
  }));
  await changeMap(control, rows);
  say(
    fresh
      ? `${partitions} partitions are divided over ${shards.length} databases`
      : 'this installation already has data: all of it stays in DATABASE_URL',
  );
}

export interface OpenOptions {
  readonly config: Config & { readonly DATABASE_URL: string };
  readonly keys: Keys;
  readonly role: string;
  readonly node: string;
  readonly connection: RedisServers;
  /** Returns the script runner. This is a function because the runner is created after these options. */
  readonly runner: () => ScriptRunner;
  readonly events: PostgresEvents;
  readonly identity: Pick<Identity, 'checkPostgres'>;
  readonly time: Time;
  readonly random: Random;
  readonly onError: (error: Error) => void;
  readonly onLate: (error: Error) => void;
}

export interface OpenedShard extends Shard {
  readonly history: History;
}

export interface OpenedShards {
  readonly all: readonly [OpenedShard, ...OpenedShard[]];
  follow(): Promise<FollowedShards>;
  close(): Promise<void>;
}

export function openShards({
  config,
  keys,
  role,
  node,
  connection,
  runner,
  events,
  identity,
  time,
  random,
  ...on
}: OpenOptions): OpenedShards {
  let followed: FollowedShards | undefined;
  const ends: Array<() => void> = [];
  const open = ({ id, url }: ShardUrl): OpenedShard => {
    const history = new History({
      ...{ url, shard: id, keys, connection, runner, time, random },
      ...(id === 0 ? { checkInstallation: (of) => identity.checkPostgres(of) } : {}),
      onWentBack: (found) => events.back(found, id),
      onOtherServer: (before, now) => events.elsewhere(before, now, id),
      onReplaced: (why) => events.replaced(why, id),
      onError: on.onLate,
      async place(own) {
        if (id !== 0) return (partition) => (followed?.of(partition).id === id ? 'own' : null);
        const { rows } = await loadMap(own);
        const places = new Map(rows.map(({ partition, shard }) => [partition, shard]));
        return (partition) => {
          const at = places.get(partition) ?? 0;
          return at === 0 ? 'own' : (all.find((shard) => shard.id === at)?.pool ?? null);
        };
      },
    });
    const pool = createPool({
      url,
      max: config.POSTGRES_POOL,
      name: role,
      guard: history,
      time,
      random,
      onError: on.onError,
    });
    return { id, url, pool, history, db: asDatabase(pool, history) };
  };
  const all = shardUrls(config).map(open) as [OpenedShard, ...OpenedShard[]];
  return {
    all,
    async follow() {
      await checkShards(shardUrls(config));
      await joinMap(all, node);
      const at = time.monotonic();
      const map = await loadMap(all[0].pool);
      followed = followShards({
        all,
        partitions: config.PARTITIONS,
        map,
        at,
        node,
        time,
        onError: on.onLate,
      });
      await followed.look();
      const known = new Set(all.map(({ id }) => id));
      const lacking = map.rows.find(({ shard }) => !known.has(shard));
      if (lacking !== undefined) {
        await followed.stop();
        throw new StartError(
          `partition ${lacking.partition} is in shard ${lacking.shard}, which is missing in DATABASE_SHARDS`,
        );
      }
      for (const { history, pool } of all) ends.push(history.watch(pool));
      return followed;
    },
    async close() {
      for (const end of ends) end();
      await followed?.stop();
      await Promise.all(all.map(({ pool }) => pool.close()));
    },
  };
}
