/** Gathers the facts from which findings are made: for `petrel doctor` and for the operators' page. */
import { nowMs } from '../clock.js';
import { loadEngine } from '../http/engine.js';
import { lastLoss, type PartitionState } from '../journal/state.js';
import { daysAhead } from '../postgres/day_partitions.js';
import { lastPostgresLoss, loadRewrites, type PostgresLoss } from '../postgres/messages/history.js';
import type { Pool } from '../postgres/pool.js';
import { holding } from '../postgres/shards.js';
import type { RedisConnection } from '../redis/connection.js';
import { shownUrl } from '../redis/slots.js';
import type { Backends } from './backends.js';
import type { Facts, ServerFacts } from './findings.js';

const flusher_age_ms_max = 30_000;

/** The share of its bounds that a partition's journal has come to. */
export function fullness({ length, highWater, bytes, bytesMax }: PartitionState): number {
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
