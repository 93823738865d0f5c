/** Collects the facts from which `petrel doctor` and the operations page derive findings. */
import { loadEngine } from '../http/engine.js';
import { keptAgeMs } from '../journal/purge.js';
import { lastLoss, type PartitionState, quarantinedIn } from '../journal/state.js';
import { loadFailingFor } from '../postgres/bots/ranking.js';
import { daysAhead, keptByDay, loadDaysState } from '../postgres/day_partitions.js';
import { lastPostgresLoss, loadRewrites } from '../postgres/messages/history.js';
import type { Pool } from '../postgres/pool.js';
import { loadMove } from '../postgres/shard_moves.js';
import type { Shard } from '../postgres/shards.js';
import type { RedisConnection } from '../redis/connection.js';
import { shownUrl } from '../redis/slots.js';
import { rangesText } from '../rules/number_ranges.js';
import { queueId } from '../store/core/queue_ids.js';
import type { Backends } from './backends.js';
import type { DatabaseFacts, Facts, ServerFacts, WebhookFacts } from './findings.js';
import { processLimits } from './limits.js';

const flusher_age_ms_max = 30_000;

/** Returns how full a journal is, relative to its limits. 1 means that a limit is reached. */
export function fullness({ length, highWater, bytes, bytesMax }: PartitionState): number {
  return Math.max(highWater > 0 ? length / highWater : 0, bytesMax > 0 ? bytes / bytesMax : 0);
}

export function parseInfo(info: string) {
  const number = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  return {
    number,
    used: number('used_memory'),
    max: number('maxmemory'),
    /** Whether Redis' last write and last rewrite of the append-only file succeeded. */
    appending: !/^(aof_last_write_status|aof_last_bgrewrite_status):err/m.test(info),
  };
}

async function factsOf({ client, url }: RedisConnection): Promise<ServerFacts> {
  const { number, used, max, appending } = parseInfo(await client.info());
  const server = `Redis at ${shownUrl(url)}`;
  return { server, usedBytes: used, maxBytes: max, replicas: number('connected_slaves'), appending };
}

async function overdueWebhooks({ connection, keys, time }: Backends): Promise<number> {
  const counts = await Promise.all(
    Array.from({ length: keys.partitions.count }, (_, partition) =>
      // Counts only webhooks that have been due for 10 s. More recent ones are not overdue yet.
      connection.at(partition)?.client.zcount(keys.webhooksDue(partition), '-inf', time.now() - 10_000),
    ),
  );
  return counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
}

/** Lists webhooks and webhook routes that have had only failures for `processLimits.failing_finding_ms`. */
async function failingWebhooks({ store, shards }: Backends): Promise<WebhookFacts[]> {
  const { failing_finding_ms: ms, failing_findings_max: max } = processLimits;
  const failing = await loadFailingFor(shards.control.db, ms, max);
  const found = await Promise.allSettled(
    failing.map(async ({ bot, username, slot, since }): Promise<WebhookFacts[]> => {
      const queue = queueId(bot, slot);
      const [webhook, routes, { error }] = await Promise.all([
        store.webhooks.find(queue),
        slot === 0 ? [] : store.webhooks.routes(bot),
        store.queues.info(queue),
      ]);
      // Skips a webhook if less than `ms` lie between its first and its last failure. A single failure is thus not
      // reported, even if the retry is minutes away.
      if (webhook === null || error === null || (error.date - since) * 1_000 < ms) return [];
      const route = routes.find((each) => each.slot === slot)?.name ?? null;
      const { host } = new URL(webhook.url);
      return [{ username, route, host, since, error: error.message }];
    }),
  );
  // Leaves out a webhook whose settings cannot be read, for instance because its key is missing. All other webhooks are
  // still shown.
  return found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
}

async function runningFlushers({ connection, keys }: Backends): Promise<number> {
  const client = connection.at(0)?.client;
  if (!client) return 0;
  const [seconds] = await client.time();
  const seen = Object.values(await client.hgetall(keys.flushers()));
  return seen.filter((at) => Number(seconds) * 1_000 - Number(at) < flusher_age_ms_max).length;
}

export async function connectionsOf(
  pool: Pool,
): Promise<Pick<DatabaseFacts, 'connections' | 'connectionsMax'>> {
  const { rows } = await pool.query<{ connections: number; max: number }>({
    name: 'doctor_connections',
    text: `select (select count(*) from pg_stat_activity where backend_type = 'client backend')::int as connections,
      current_setting('max_connections')::int as max`,
  });
  return { connections: rows[0]?.connections ?? 0, connectionsMax: rows[0]?.max ?? 0 };
}

export const databaseName = (shard: number): string =>
  shard === 0 ? 'Postgres' : `Postgres (shard ${shard})`;

async function databaseFacts({ config, shards, time }: Backends, shard: Shard): Promise<DatabaseFacts> {
  const { id, pool } = shard;
  const { UPDATES_DAYS, MESSAGE_DAYS } = config;
  const own = shards.owned(shard);
  const keepsUpdates = own.length > 0 && UPDATES_DAYS > 0;
  const [connections, quarantined, ahead, messagesAhead, keptDays, lost, rewrites] = await Promise.all([
    connectionsOf(pool),
    quarantinedIn(pool, own),
    own.length > 0 ? daysAhead(pool) : null,
    own.length > 0 ? daysAhead(pool, { table: 'messages' }) : null,
    keepsUpdates ? loadDaysState(pool, keptByDay, keptAgeMs(UPDATES_DAYS, MESSAGE_DAYS)) : null,
    lastPostgresLoss(pool),
    loadRewrites(pool),
  ]);
  return {
    database: databaseName(id),
    ...connections,
    quarantined,
    failureDaysAhead: ahead,
    messageDaysAhead: messagesAhead,
    keptDays,
    lost: lost && { ago: time.now() - new Date(lost.at).getTime(), transactions: lost.transactions },
    rewriting: rewrites.length,
  };
}

async function movingNow({ pool, time }: Backends): Promise<Facts['moving']> {
  const move = await loadMove(pool);
  if (move === null) return null;
  return {
    what: `partitions ${rangesText(move.partitions)} are moving from shard ${move.source} to shard ${move.target}`,
    paused: move.step !== 'copy' && move.step !== 'clean',
    silentMs: time.now() - move.renewed_at.getTime(),
  };
}

/**
 * Collects the facts from which findings are derived. `warnings` are the warnings about the configuration of Redis.
 * Throws an error if Redis or Postgres is unavailable.
 */
export async function gather(
  backends: Backends,
  state: readonly PartitionState[],
  warnings: readonly string[],
  files: string | null,
): Promise<Facts> {
  const { note } = loadEngine();
  const { connection, pool, shards, nodeKeys, time } = backends;
  const [servers, overdue, failing, flushers, others, databases, moving, loss] = await Promise.all([
    Promise.all(connection.nodes().map(factsOf)),
    overdueWebhooks(backends),
    failingWebhooks(backends),
    runningFlushers(backends),
    nodeKeys.others(),
    Promise.all(shards.all.map((shard) => databaseFacts(backends, shard))),
    movingNow(backends),
    lastLoss(pool),
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
      flushedAgo: flushed.length > 0 ? time.now() - Math.max(...flushed) : null,
    },
    overdueWebhooks: overdue,
    failingWebhooks: failing,
    flushers,
    nodes: others.length,
    databases,
    moving,
    lostAgo: loss === null ? null : time.now() - new Date(loss.at).getTime(),
  };
}
