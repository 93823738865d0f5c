/**
 * Shows operators the state of the whole installation. Queries the databases and Redis on demand, at most once per
 * interval for all viewers together. If a database or a Redis server is unavailable, only the figures from that server
 * are missing. All other figures are shown without delay.
 */

import { version } from '../config/version.js';
import { fail } from '../errors.js';
import { journalState } from '../journal/state.js';
import { durationBounds } from '../obs/distribution.js';
import type { RedisConnection } from '../redis/connection.js';
import { shownUrl } from '../redis/slots.js';
import type { Operations } from '../server/endpoint.js';
import { callLimits } from '../server/limits.js';
import { botOf } from '../store/core/queue_ids.js';
import type { Time } from '../time.js';
import type { HistoryRange, NodeReport, Overview, RankedBot, Ranking } from '../wire/admin_results.js';
import type { Backends } from './backends.js';
import { readBacklog } from './backlog.js';
import { connectionsOf, databaseName, gather, parseInfo } from './facts.js';
import { type Finding, findingsOf } from './findings.js';
import { readHistory } from './history.js';
import { processLimits } from './limits.js';
import { readNodes, type SeenNode } from './node.js';
import { longRanges, readPrometheus } from './prometheus.js';
import { describeBots, loadTotals, mostDead, mostFailing } from './rankings.js';

async function inTime<T>(time: Time, asked: Promise<T>): Promise<T | null> {
  const answer = await time.within(
    processLimits.operations_wait_ms_max,
    asked.catch(() => null),
  );
  return answer ?? null;
}

/** Caches an answer for `ms` from the moment when it was requested. */
function remembered<T>(time: Time, ms: number, ask: () => Promise<T>): () => Promise<T> {
  let last: { readonly at: number; readonly answer: Promise<T> } | undefined;
  return () => {
    if (last && time.monotonic() - last.at < ms) return last.answer;
    last = { at: time.monotonic(), answer: ask() };
    return last.answer;
  };
}

async function serverOf({ client, url }: RedisConnection): Promise<NonNullable<Overview['redis']>[number]> {
  const info = await client.info();
  const { number, used, max, appending } = parseInfo(info);
  return {
    server: shownUrl(url),
    version: /^redis_version:(\S+)/m.exec(info)?.[1] ?? '?',
    ...{ used_bytes: used, max_bytes: max, appending },
    replicas: number('connected_slaves'),
    clients: number('connected_clients'),
    commands_per_second: number('instantaneous_ops_per_sec'),
  };
}

async function postgresOf(backends: Backends): Promise<NonNullable<Overview['postgres']>> {
  const { pool, time } = backends;
  const began = time.monotonic();
  const asked = await pool.query<{ server_version: string }>({
    name: 'server_version',
    text: 'show server_version',
  });
  const ms = Math.round((time.monotonic() - began) * 10) / 10;
  const [{ connections, connectionsMax }, totals] = await Promise.all([
    connectionsOf(pool),
    loadTotals(backends),
  ]);
  return {
    version: asked.rows[0]?.server_version ?? '?',
    connections,
    connections_max: connectionsMax,
    ms,
    ...totals,
  };
}

async function journalOf(backends: Backends) {
  const state = await journalState(backends);
  // Passes no warnings about Redis, because every process already logs these warnings when it starts.
  const facts = await gather(backends, state, [], null);
  return {
    facts,
    shown: {
      waiting: facts.journal.waiting,
      fullest: Math.max(...state.map(({ length }) => length)),
      high_water: backends.config.JOURNAL_HIGH_WATER,
      flushed_ms_ago: facts.journal.flushedAgo === null ? null : Math.max(0, facts.journal.flushedAgo),
      quarantined: facts.databases.reduce((sum, { quarantined }) => sum + quarantined, 0),
    },
  };
}

const away = (what: string): Finding => ({
  bad: true,
  what: `${what} does not answer`,
  todo: `check ${what} and the network; ${what === 'Redis' ? 'without it no call is served' : 'until it answers, cold data cannot be read and changes wait in the journals'}`,
});

async function silentOf({ shards, time }: Backends): Promise<string[]> {
  const answers = await Promise.all(
    shards.all.map(async (shard) => {
      const answer = await inTime(
        time,
        shard.pool.query({ name: 'operations_ping', text: 'select 1 as up' }),
      );
      return answer === null ? [databaseName(shard.id)] : [];
    }),
  );
  return answers.flat();
}

const silent = (nodes: readonly SeenNode[]): Finding[] =>
  nodes
    .filter(({ silent_ms }) => silent_ms > processLimits.node_silent_ms)
    .map(({ role, host, pid }) => ({
      bad: true,
      what: `${role} ${pid} on ${host} stopped reporting`,
      todo: 'it was killed, hangs or cannot reach Redis; check its log. Other processes do its work meanwhile',
    }));

async function look(backends: Backends): Promise<Overview> {
  const { node, time, connection } = backends;
  const [nodes, backlog, redis, postgres, journal, silentDatabases] = await Promise.all([
    inTime(time, readNodes(backends)),
    inTime(time, readBacklog(backends)),
    inTime(time, Promise.all(connection.nodes().map(serverOf))),
    inTime(time, postgresOf(backends)),
    inTime(time, journalOf(backends)),
    silentOf(backends),
  ]);
  const own = node.lastReport as NodeReport | null;
  const seen = nodes ?? (own ? [{ ...own, reported_ms: time.now(), silent_ms: 0 }] : []);
  const facts = journal && { ...journal.facts, nodes: seen.length };
  const findings = [
    ...(redis === null || nodes === null ? [away('Redis')] : []),
    ...(postgres === null && silentDatabases.length === 0 ? ['Postgres'] : silentDatabases).map(away),
    ...silent(seen),
    ...(facts ? findingsOf(facts) : []),
  ];
  return {
    at_ms: time.now(),
    version,
    node: node.id,
    bounds_seconds: [...durationBounds],
    silent_after_ms: processLimits.node_silent_ms,
    findings: findings.sort((a, b) => Number(b.bad) - Number(a.bad)),
    nodes: [...seen].sort((a, b) => a.role.localeCompare(b.role) || a.since_ms - b.since_ms),
    journal: journal?.shown ?? null,
    queues: backlog && {
      outbox: backlog.outbox,
      webhooks_due: backlog.webhooksDue,
      webhooks_overdue: backlog.webhooksOverdue,
      overdue_ms: Math.max(0, Math.round(backlog.webhookOverdueSeconds * 1_000)),
    },
    redis,
    postgres,
  };
}

/**
 * Returns the bots with the most pending updates. Looks only at bots with a due webhook. Operators can look up polling
 * bots by name.
 */
async function mostPending({ connection, keys }: Backends, limit: number): Promise<number[]> {
  const { count } = keys.partitions;
  const each = Math.max(1, Math.floor(callLimits.bots_looked_at_max / count));
  const found = await Promise.all(
    Array.from({ length: count }, async (_, partition) => {
      const client = connection.at(partition)?.client;
      const due = (await client?.zrange(keys.webhooksDue(partition), '0', String(each - 1))) ?? [];
      return Promise.all(
        due.map(async (bot) => ({
          bot: Number(bot),
          pending: (await client?.xlen(keys.queue(Number(bot)))) ?? 0,
        })),
      );
    }),
  );
  const bots = found
    .flat()
    .filter(({ pending }) => pending > 0)
    .sort((a, b) => b.pending - a.pending || a.bot - b.bot)
    .map(({ bot }) => botOf(bot));
  return [...new Set(bots)].slice(0, limit);
}

async function describe(backends: Backends, ids: readonly number[]): Promise<RankedBot[]> {
  const { store } = backends;
  const known = new Map((await describeBots(backends, ids)).map((row) => [row.id, row]));
  const bots = ids.flatMap((id) => known.get(id) ?? []);
  return Promise.all(
    bots.map(async ({ id, username, hooked, failing_since, ...counts }) => {
      const [webhook, info] = await Promise.all([
        hooked ? store.webhooks.find(id) : null,
        store.queues.info(id),
      ]);
      return {
        id,
        username,
        // Shows only the host, because a webhook URL often contains a token.
        ...(webhook ? { webhook_host: new URL(webhook.url).host } : {}),
        pending: info.pending,
        ...(failing_since === null ? {} : { failing_since }),
        ...(webhook && info.error
          ? { last_error: info.error.message, last_error_date: info.error.date }
          : {}),
        ...counts,
      };
    }),
  );
}

/**
 * Creates a function that returns the history of a range. An hour comes from Redis, and longer ranges come from
 * Prometheus.
 */
function createHistories(backends: Backends): Operations['history'] {
  const { time, troubles, config } = backends;
  const { PROMETHEUS_URL: url } = config;
  const onError = troubles.onDelay(
    'reading figures from Prometheus',
    'the operations page shows only an hour',
  );
  const longer = new Map(
    url === undefined
      ? []
      : longRanges.map((range) => {
          const read = () =>
            readPrometheus({ url, range, time }).catch((error: Error) => {
              onError(error);
              return null;
            });
          return [range, remembered(time, processLimits.prometheus_age_ms_max, read)] as const;
        }),
  );
  const ranges: HistoryRange[] = ['1h', ...longer.keys()];
  return async (range, afterMs) => {
    if (range === '1h') {
      const hour = await inTime(time, readHistory(backends, afterMs));
      return hour === null ? fail('unavailable', { retry_after: 1 }) : { ...hour, ranges };
    }
    const read = longer.get(range) ?? fail('no_prometheus');
    const { points, ...found } = (await read()) ?? fail('unavailable', { retry_after: 1 });
    return { ...found, ranges, points: points.filter(({ at_ms }) => at_ms > afterMs) };
  };
}

export function createOperations(backends: Backends): Operations {
  const most = callLimits.bots_ranked_max;
  const find: Readonly<Record<Ranking, () => Promise<number[]>>> = {
    pending: () => mostPending(backends, most),
    failures: () => mostFailing(backends, most),
    dead_letters: () => mostDead(backends, most),
  };
  const ranked = Object.fromEntries(
    Object.entries(find).map(([order, ids]) => [
      order,
      remembered(backends.time, processLimits.operations_look_ms, async () =>
        describe(backends, await ids()),
      ),
    ]),
  ) as Readonly<Record<Ranking, () => Promise<RankedBot[]>>>;
  return {
    history: createHistories(backends),
    overview: remembered(backends.time, processLimits.operations_look_ms, () => look(backends)),
    async bots({ order, limit, bot }) {
      if (bot !== undefined) return describe(backends, [bot]);
      return (await ranked[order]()).slice(0, limit);
    },
  };
}
