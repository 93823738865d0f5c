/** The task `doctor`: prints what runs, on which versions, how far write-behind has come, and what is not as it should be. */

import { nowMs } from '../clock.js';
import { ratesOf, ratesText, redisOf } from '../config.js';
import { loadEngine } from '../http/engine.js';
import { countQuarantined, journalState, lastLoss, type PartitionState } from '../journal/state.js';
import { daysAhead } from '../postgres/day_partitions.js';
import { lastPostgresLoss, loadRewrites, type PostgresLoss } from '../postgres/history.js';
import { appliedVersion, schemaVersion } from '../postgres/migrate.js';
import type { Pool } from '../postgres/pool.js';
import { holding } from '../postgres/shards.js';
import { checkRedis } from '../redis/check.js';
import type { RedisConnection } from '../redis/connection.js';
import { shownUrl } from '../redis/slots.js';
import { version } from '../version.js';
import type { Backends } from './backends.js';
import { type Facts, findingsOf, type ServerFacts } from './findings.js';

const flusher_age_ms_max = 30_000;

const mebibytes = (bytes: number): string => `${Math.round((bytes * 10) / 1024 ** 2) / 10} MiB`;

/** The share of its bounds that a partition's journal has come to. */
function fullness({ length, highWater, bytes, bytesMax }: PartitionState): number {
  return Math.max(highWater > 0 ? length / highWater : 0, bytesMax > 0 ? bytes / bytesMax : 0);
}

async function factsOf({ client, url }: RedisConnection): Promise<ServerFacts> {
  const info = await client.info();
  const number = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  return {
    server: `Redis at ${shownUrl(url)}`,
    usedBytes: number('used_memory'),
    maxBytes: number('maxmemory'),
    replicas: number('connected_slaves'),
    appending: !/^(aof_last_write_status|aof_last_bgrewrite_status):err/m.test(info),
  };
}

async function overdueWebhooks({ connection, keys }: Backends): Promise<number> {
  const counts = await Promise.all(
    Array.from({ length: keys.partitions.count }, (_, partition) =>
      // Due this second is in time.
      connection.at(partition)?.client.zcount(keys.webhooksDue(partition), '-inf', nowMs() - 10_000),
    ),
  );
  return counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
}

async function runningFlushers({ connection, keys }: Backends): Promise<number> {
  const client = connection.at(0)?.client;
  if (!client) return 0;
  const [seconds] = await client.time();
  const seen = Object.values(await client.hgetall(keys.flushers()));
  return seen.filter((at) => Number(seconds) * 1_000 - Number(at) < flusher_age_ms_max).length;
}

export async function connectionsOf(pool: Pool): Promise<Facts['postgres']> {
  const { rows } = await pool.query<{ connections: number; max: number }>({
    name: 'doctor_connections',
    text: `select (select count(*) from pg_stat_activity where backend_type = 'client backend')::int as connections,
      current_setting('max_connections')::int as max`,
  });
  return { connections: rows[0]?.connections ?? 0, connectionsMax: rows[0]?.max ?? 0 };
}

/** Of the database with the least room left. */
const fullestOf = (all: ReadonlyArray<Facts['postgres']>) =>
  all.reduce((a, b) => (b.connections / b.connectionsMax > a.connections / a.connectionsMax ? b : a));

const latestOf = (all: ReadonlyArray<PostgresLoss | null>) =>
  all.reduce((a, b) => (a === null || (b !== null && b.at > a.at) ? b : a), null);

/** What findings are made from; `warnings` are what Redis is warned of. Errors: what Redis or Postgres is unavailable with. */
export async function gather(
  backends: Backends,
  state: readonly PartitionState[],
  quarantined: number,
  warnings: readonly string[],
  files: string | null,
): Promise<Facts> {
  const { note } = loadEngine();
  const { connection, pool, shards, ring } = backends;
  const pools = shards.all.map((shard) => shard.pool);
  const [servers, overdue, flushers, others, postgres, loss, ahead, postgresLoss, rewrites] =
    await Promise.all([
      Promise.all(connection.nodes().map(factsOf)),
      overdueWebhooks(backends),
      runningFlushers(backends),
      ring.others(),
      Promise.all(pools.map(connectionsOf)).then(fullestOf),
      lastLoss(pool),
      Promise.all(holding(shards).map((shard) => daysAhead(shard.pool))),
      Promise.all(pools.map(lastPostgresLoss)).then(latestOf),
      Promise.all(pools.map(loadRewrites)),
    ]);
  const flushed = state.flatMap(({ flushedAt }) => (flushedAt === null ? [] : [flushedAt.getTime()]));
  return {
    engine: { note },
    warnings,
    held: backends.held(),
    files,
    servers,
    journal: {
      waiting: state.reduce((sum, { length }) => sum + length, 0),
      fullest: Math.max(...state.map(fullness)),
      flushedAgo: flushed.length > 0 ? nowMs() - Math.max(...flushed) : null,
    },
    quarantined,
    failureDaysAhead: Math.min(...ahead),
    overdueWebhooks: overdue,
    flushers,
    nodes: others.length,
    postgres,
    postgresLost: postgresLoss && {
      ago: nowMs() - new Date(postgresLoss.at).getTime(),
      transactions: postgresLoss.transactions,
    },
    rewriting: rewrites.flat().length,
    lostAgo: loss === null ? null : nowMs() - new Date(loss.at).getTime(),
  };
}

/** Prints findings; returns whether any is bad. */
function tell(facts: Facts, say: (line: string) => void): boolean {
  const found = findingsOf(facts);
  for (const { bad, what, todo } of found) {
    say(`${bad ? 'WRONG' : 'advice'}${' '.repeat(bad ? 8 : 7)}${what}`);
    if (todo !== '') say(`             → ${todo}`);
  }
  if (found.length === 0) say('well         everything is as it should be');
  return found.some(({ bad }) => bad);
}

/** Returns whether all is well: what is merely not advised counts for nothing. Errors: what Redis or Postgres is unavailable with. */
export async function runDoctor(backends: Backends): Promise<boolean> {
  const { config, connection, pool, shards } = backends;
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const engine = loadEngine();
  const state = await journalState(backends);
  say(`petrel       ${version}, Node.js ${process.versions.node}`);
  say(`engine       ${engine.name} ${engine.version}`);
  if (engine.note) say(`             the current engine does not run here: ${engine.note}`);
  for (const node of connection.nodes()) {
    const info = await node.client.info('server');
    const share = state.filter(({ partition }) => connection.at(partition) === node).length;
    const where = connection.clustered ? `${shownUrl(node.url)} with ${share} partitions, ` : '';
    say(
      `redis        ${where}${/redis_version:(\S+)/.exec(info)?.[1]}, history ${node.runId()?.slice(0, 8)}`,
    );
  }
  const [{ server_version } = { server_version: '?' }] = (
    await pool.query<{ server_version: string }>({ name: 'server_version', text: 'show server_version' })
  ).rows;
  say(
    `postgres     ${server_version}, schema ${await appliedVersion(config.DATABASE_URL as string)} of ${schemaVersion()}`,
  );
  for (const shard of shards.all.slice(1)) {
    const { rows } = await shard.pool.query<{ server_version: string }>({
      name: 'server_version',
      text: 'show server_version',
    });
    const schema = `${await appliedVersion(shard.url)} of ${schemaVersion()}`;
    say(
      `shard ${shard.id}      ${rows[0]?.server_version ?? '?'}, schema ${schema}, ${shards.owned(shard).length} partitions`,
    );
  }
  say(`rates        ${ratesText(ratesOf(config))}`);
  const waiting = state.reduce((sum, p) => sum + p.length, 0);
  const fullest = state.reduce((a, b) => (fullness(b) > fullness(a) ? b : a));
  const closed = state.filter((p) => p.run !== connection.at(p.partition)?.runId());
  say(
    `partitions   ${state.length}, ${closed.length === 0 ? 'all open' : `${closed.length} to be opened by the next change`}`,
  );
  say(
    `journal      ${waiting} entries wait; the fullest partition (${fullest.partition}) has ${fullest.length} of ${fullest.highWater}, ${mebibytes(fullest.bytes)} of ${mebibytes(fullest.bytesMax)}`,
  );
  const last = state.reduce<Date | null>(
    (a, p) => (p.flushedAt && (!a || p.flushedAt > a) ? p.flushedAt : a),
    null,
  );
  say(`flushed      ${last ? last.toISOString() : 'never'}`);
  const quarantined = await countQuarantined(shards);
  say(`quarantine   ${quarantined} entries`);
  const { warnings } = await checkRedis(redisOf(config));
  return !tell(await gather(backends, state, quarantined, warnings, await backends.filesProblem()), say);
}
