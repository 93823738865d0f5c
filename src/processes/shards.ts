/**
 * Opens the databases of the settings, checks that each is the right one, and follows the shard map in the control
 * database.
 */
import type { Config } from '../config/config.js';
import { createHistory, type History } from '../journal/history.js';
import type { Identity } from '../journal/identity.js';
import { loadIdentity } from '../postgres/identity.js';
import { databaseProblem } from '../postgres/migrate.js';
import { createPool, type Pool, statement } from '../postgres/pool.js';
import {
  changeMap,
  type FollowedShards,
  followShards,
  joinMap,
  loadEpoch,
  loadMap,
  type Shard,
} from '../postgres/shards.js';
import { asDatabase } from '../postgres/sql.js';
import type { RedisServers } from '../redis/connection.js';
import type { ScriptRunner } from '../redis/scripts/scripts.js';
import type { Keys } from '../store/core/keys.js';
import { StartError } from './installation.js';
import type { PostgresEvents } from './postgres_events.js';

export interface ShardUrl {
  readonly id: number;
  readonly url: string;
}

/** URLs of the databases, the control database first. */
export const shardUrls = (
  config: Pick<Config, 'DATABASE_SHARDS'> & { readonly DATABASE_URL: string },
): ShardUrl[] => [{ id: 0, url: config.DATABASE_URL }, ...config.DATABASE_SHARDS];

/** The setting that names a database. */
export const shardName = (id: number): string => (id === 0 ? 'DATABASE_URL' : `DATABASE_SHARDS ${id}`);

/**
 * Throws a StartError for a schema that this program cannot work with. With `waits`, an outdated schema throws another
 * error, because a migration may be running.
 */
export async function checkSchemas(urls: readonly ShardUrl[], waits: boolean): Promise<void> {
  for (const { id, url } of urls) {
    const problem = await databaseProblem(url);
    if (problem === null) continue;
    const text = id === 0 ? problem : `${shardName(id)}: ${problem}`;
    throw waits && problem.includes('petrel migrate') ? new Error(text) : new StartError(text);
  }
}

const readNote = statement('shard_note', "select value from installation where name = 'SHARD'");
const putNote = statement(
  'put_shard_note',
  "insert into installation (name, value) values ('SHARD', $1) on conflict (name) do nothing",
);
const isNew = statement(
  'is_new_installation',
  "select not exists (select from installation where name = 'TOKEN_ROOT') as fresh",
);

async function noteOf(pool: Pool): Promise<string | undefined> {
  return (await pool.query<{ value: string }>(readNote)).rows[0]?.value;
}

/** Refuses a database of another installation, or another shard of this one. */
function compareNote(id: number, installation: string, found: string): void {
  if (found === `${id} ${installation}`) return;
  const [number, of] = found.split(' ');
  const is = of === installation ? `shard ${number}` : 'a shard of another installation';
  throw new StartError(`${shardName(id)} is ${is}`);
}

/**
 * Compares the recorded shard number of each database with the settings. Must run before the guard of a shard, which
 * would take a wrong shard for one that lost transactions. Errors: StartError, or those of Postgres.
 */
export async function checkShards(urls: readonly ShardUrl[]): Promise<void> {
  if (urls.length === 1) return;
  const pools = urls.map(({ url }) => createPool({ url, max: 1, name: 'check' }));
  try {
    const [control, ...others] = pools as [Pool, ...Pool[]];
    const installation = (await loadIdentity(control)).id;
    for (const [i, pool] of others.entries()) {
      const { id } = urls[i + 1] as ShardUrl;
      const found = await noteOf(pool);
      // A migration may be recording the shard number now, so a role waits.
      if (found === undefined)
        throw new Error(`${shardName(id)} is not a shard of this installation yet: run "petrel migrate"`);
      compareNote(id, installation, found);
    }
  } finally {
    await Promise.all(pools.map((pool) => pool.close()));
  }
}

/**
 * Records in each database which shard it is, once its schema exists. A new installation is divided evenly over
 * DATABASE_SHARDS. An existing one keeps its data in place until `petrel shards move`. Errors: StartError, or those of
 * Postgres.
 */
export async function noteShards(
  urls: readonly ShardUrl[],
  partitions: number,
  say: (line: string) => void,
): Promise<void> {
  if (urls.length === 1) return;
  const pools = urls.map(({ url }) => createPool({ url, max: 1, name: 'migrate' }));
  try {
    const [control, ...others] = pools as [Pool, ...Pool[]];
    const installation = (await loadIdentity(control)).id;
    const idOf = (i: number) => (urls[i + 1] as ShardUrl).id;
    const present = await Promise.all(others.map(noteOf));
    for (const [i, found] of present.entries())
      if (found !== undefined) compareNote(idOf(i), installation, found);
    // The partitions are divided first, because a node starts to serve once every shard has its record.
    if ((await loadEpoch(control)) === 0) await divide(control, urls.slice(1), partitions, say);
    for (const [i, pool] of others.entries()) await pool.query(putNote, [`${idOf(i)} ${installation}`]);
  } finally {
    await Promise.all(pools.map((pool) => pool.close()));
  }
}

async function divide(
  control: Pool,
  shards: readonly ShardUrl[],
  partitions: number,
  say: (line: string) => void,
): Promise<void> {
  const [{ fresh } = { fresh: false }] = (await control.query<{ fresh: boolean }>(isNew)).rows;
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
  /** Name of this process as a node. */
  readonly node: string;
  readonly connection: RedisServers;
  /** Called each time it is needed, because the runner is created later. */
  readonly runner: () => ScriptRunner;
  readonly events: PostgresEvents;
  readonly identity: Pick<Identity, 'checkPostgres'>;
  readonly onError: (error: Error) => void;
  readonly onLate: (error: Error) => void;
}

export interface OpenedShard extends Shard {
  readonly history: History;
}

export interface OpenedShards {
  readonly all: readonly [OpenedShard, ...OpenedShard[]];
  /** Reads the map, and follows its changes from then on. */
  follow(): Promise<FollowedShards>;
  close(): Promise<void>;
}

/** Creates guarded pools. They connect with their first query. */
export function openShards({
  config,
  keys,
  role,
  node,
  connection,
  runner,
  events,
  identity,
  ...on
}: OpenOptions): OpenedShards {
  let followed: FollowedShards | undefined;
  const ends: Array<() => void> = [];
  const open = ({ id, url }: ShardUrl): OpenedShard => {
    const history = createHistory({
      ...{ url, shard: id, keys, connection, runner },
      ...(id === 0 ? { checkInstallation: identity.checkPostgres } : {}),
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
      const at = performance.now();
      const map = await loadMap(all[0].pool);
      followed = followShards({ all, partitions: config.PARTITIONS, map, at, node, onError: on.onLate });
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
