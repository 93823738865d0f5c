/** Derives findings from facts, without side effects. A finding is a problem and advice on how to solve it. */

import type { DaysState } from '../postgres/day_partitions.js';

export interface ServerFacts {
  readonly server: string;
  readonly usedBytes: number;
  /** The memory limit in bytes. 0 means unlimited. */
  readonly maxBytes: number;
  readonly replicas: number;
  readonly appending: boolean;
}

export interface DatabaseFacts {
  readonly database: string;
  readonly connections: number;
  readonly connectionsMax: number;
  readonly quarantined: number;
  /**
   * For how many days ahead the table of delivery failures has partitions. Null if the database stores no chats.
   */
  readonly failureDaysAhead: number | null;
  /** For how many days ahead the table of messages has partitions. Null if the database stores no chats. */
  readonly messageDaysAhead: number | null;
  /**
   * The table partitions for delivered updates. Null if UPDATES_DAYS is not set, and for a database that stores no
   * chats.
   */
  readonly keptDays: DaysState | null;
  /** The last loss of committed transactions: how many ms ago, and how many transactions. Null if there was none. */
  readonly lost: { readonly ago: number; readonly transactions: number } | null;
  /** How many chat partitions must be written from Redis to Postgres again. */
  readonly rewriting: number;
}

export interface WebhookFacts {
  readonly username: string;
  /** The webhook route's name, or null for the bot's own webhook. */
  readonly route: string | null;
  /** The receiver's host and port. The rest of the URL is left out, because it often contains a token. */
  readonly host: string;
  /** The Unix time in seconds of the first failure. */
  readonly since: number;
  readonly error: string;
}

export interface Facts {
  readonly engine: { readonly note: string | undefined };
  /** Warnings about the configuration of Redis. Petrel checks the configuration when a process starts. */
  readonly warnings: readonly string[];
  readonly servers: readonly ServerFacts[];
  readonly journal: {
    readonly waiting: number;
    readonly fullest: number;
    /** How many ms ago the last write to Postgres was, or null if there was none. */
    readonly flushedAgo: number | null;
  };
  readonly overdueWebhooks: number;
  /**
   * Webhooks that have had only failures for `processLimits.failing_finding_ms`, most recent failure first. At most
   * `processLimits.failing_findings_max`.
   */
  readonly failingWebhooks: readonly WebhookFacts[];
  /** The number of flushers that reported recently. `nodes` counts the processes of all roles. */
  readonly flushers: number;
  readonly nodes: number;
  readonly databases: readonly DatabaseFacts[];
  /** The unfinished move of partitions, or null. */
  readonly moving: { readonly what: string; readonly paused: boolean; readonly silentMs: number } | null;
  /** True during a drill (a test with a restored backup). Petrel then sends no requests to webhooks and browsers. */
  readonly held: boolean;
  /** Why uploaded files cannot be written. Null if they can be written or if this was not checked. */
  readonly files: string | null;
  /** How many ms ago Redis last lost changes, or null if it never did. */
  readonly lostAgo: number | null;
}

export interface Finding {
  /** True if the finding causes failures now or soon. False if it is only advice. */
  readonly bad: boolean;
  readonly what: string;
  readonly todo: string;
}

const day_ms = 86_400_000;
const flushed_ms_max = 30_000;
/** A move of partitions counts as interrupted after this many ms without a report from the process that moves them. */
const left_ms = 15_000;
const percent = (share: number) => `${Math.round(share * 100)} %`;

function ofServer({ server, usedBytes, maxBytes, replicas, appending }: ServerFacts): Finding[] {
  const found: Finding[] = [];
  const add = (bad: boolean, what: string, todo: string) =>
    found.push({ bad, what: `${server} ${what}`, todo });
  if (!appending)
    add(
      true,
      'cannot write its append-only file',
      'check its disk and log; Redis refuses changes until this is fixed',
    );
  if (maxBytes === 0)
    add(
      false,
      'has no memory limit',
      'set maxmemory below the memory of the machine, or the system may kill Redis',
    );
  else if (usedBytes > 0.8 * maxBytes)
    add(
      usedBytes > 0.95 * maxBytes,
      `uses ${percent(usedBytes / maxBytes)} of its memory limit`,
      'give it more memory, lower HOT_TTL_MS, or add masters and move slots to them',
    );
  if (replicas === 0)
    add(
      false,
      'has no replica',
      'add a replica; without a replica, losing this server loses all changes that are not yet in Postgres',
    );
  return found;
}

function ofJournals({ journal, flushers }: Facts): Finding[] {
  const found: Finding[] = [];
  const stuck = journal.waiting > 0 && (journal.flushedAgo ?? Number.POSITIVE_INFINITY) > flushed_ms_max;
  if (flushers === 0)
    found.push({
      bad: true,
      what: 'no flusher runs',
      todo: 'start "petrel flush" or "petrel all"; without a flusher, journals grow until changes are refused',
    });
  else if (stuck)
    found.push({
      bad: true,
      what: 'journals have entries, but nothing was written to Postgres for 30 s',
      todo: 'check the logs of the flushers and of Postgres',
    });
  if (journal.fullest > 0.5)
    found.push({
      bad: journal.fullest > 0.9,
      what: `the fullest journal is at ${percent(journal.fullest)} of its limit`,
      todo: 'add flushers, or find out what slows Postgres down; at the limit, changes answer 429',
    });
  return found;
}

/**
 * Flushers create missing partitions when they start. While no flusher runs, a missing partition is therefore only
 * advice.
 */
function ofKeptDays(database: string, { today, ahead, overdue }: DaysState, flushers: number): Finding[] {
  const found: Finding[] = [];
  if (ahead < 1)
    found.push({
      bad: flushers > 0,
      what: `${database} has no partition for tomorrow’s delivered updates`,
      todo: 'flushers try to create it every minute and log why that fails; until then rows go to kept_updates_default',
    });
  if (!today)
    found.push({
      bad: false,
      what: `${database} has no partition for today’s delivered updates`,
      todo: 'rows of today go to kept_updates_default, and are deleted there one by one after UPDATES_DAYS',
    });
  if (overdue > 0)
    found.push({
      bad: false,
      what: `${database} still has expired partitions of delivered updates: ${overdue}`,
      todo: 'flushers try to drop them every minute, but not while another session locks them or a move of partitions runs',
    });
  return found;
}

function ofDatabase(facts: DatabaseFacts, flushers: number): Finding[] {
  const { database, connections, connectionsMax, quarantined, lost, rewriting } = facts;
  const { failureDaysAhead, messageDaysAhead, keptDays } = facts;
  const found: Finding[] = [];
  if (quarantined > 0)
    found.push({
      bad: true,
      what: `${quarantined} journal entries are in quarantine in ${database}`,
      todo: 'Postgres refused them; the table quarantine holds their content and the reasons',
    });
  if (messageDaysAhead !== null && messageDaysAhead < 1)
    found.push({
      bad: flushers > 0,
      what: `${database} has no partition for tomorrow’s messages`,
      todo: 'flushers try to create it every minute and log why that fails; until then rows go to messages_default',
    });
  if (failureDaysAhead !== null && failureDaysAhead < 1)
    found.push({
      // While no flusher runs, a missing partition is only advice, because a flusher creates it when it starts.
      bad: flushers > 0,
      what: `${database} has no partition for tomorrow’s delivery failures`,
      todo: 'flushers try to create it every minute and log why that fails; until then rows go to delivery_failures_default',
    });
  if (keptDays !== null) found.push(...ofKeptDays(database, keptDays, flushers));
  if (connections > 0.9 * connectionsMax)
    found.push({
      bad: true,
      what: `${connections} of ${connectionsMax} connections to ${database} are open`,
      todo: 'lower POSTGRES_POOL, raise max_connections, or use a connection pooler',
    });
  if (lost !== null && lost.ago < 7 * day_ms)
    found.push({
      bad: rewriting > 0,
      what:
        `${database} lost ${lost.transactions} committed transactions within the last week` +
        (rewriting > 0 ? `; ${rewriting} partitions are still being rewritten from Redis` : ''),
      todo: 'users, bots, settings and tokens from those transactions are lost; see the runbook PetrelPostgresWentBack',
    });
  return found;
}

function ofMove({ what, paused, silentMs }: NonNullable<Facts['moving']>): Finding {
  const left = silentMs > left_ms;
  return {
    bad: left && paused,
    what: `${what}${left ? ', but no process continues the move' : ''}${paused ? '; their changes wait in Redis meanwhile' : ''}`,
    todo: '"petrel shards list" shows the commands that continue or cancel the move',
  };
}

function ofWebhook({ username, route, host, since, error }: WebhookFacts): Finding {
  const which = route === null ? 'the webhook' : `the webhook route ${route}`;
  const start = new Date(since * 1_000).toISOString().slice(0, 16).replace('T', ' ');
  return {
    // A failing receiver is the fault of the bot's owner, so it must not make the operator's health checks fail.
    bad: false,
    what: `${which} of @${username} at ${host} has failed every attempt since ${start} UTC: ${error}`,
    todo: 'ask the owner of the bot to check the receiver; updates that fail for a day become dead letters',
  };
}

export function findingsOf(facts: Facts): Finding[] {
  const { engine, warnings, servers, overdueWebhooks, nodes, databases, moving, lostAgo } = facts;
  const found: Finding[] = [];
  if (engine.note)
    found.push({
      bad: false,
      what: 'the current HTTP engine does not run here; the older engine is used',
      todo: 'use a system with glibc 2.38 or newer, or the container image',
    });
  for (const warning of warnings) {
    const [what = warning, todo = ''] = warning.split(/ \((?=set )/);
    found.push({ bad: false, what, todo: todo.replace(/\)$/, '') });
  }
  found.push(
    ...servers.flatMap(ofServer),
    ...ofJournals(facts),
    ...databases.flatMap((database) => ofDatabase(database, facts.flushers)),
    ...(moving === null ? [] : [ofMove(moving)]),
  );
  if (facts.held)
    found.push({
      bad: false,
      what: 'this is a drill: nothing is sent to webhooks and browsers',
      todo: 'stop the original installation, then run "petrel resume"; otherwise both deliver',
    });
  if (facts.files !== null)
    found.push({
      bad: true,
      what: facts.files,
      todo: 'fix this; until then uploads answer 503 and no front starts',
    });
  if (nodes === 0)
    found.push({
      bad: true,
      what: 'no node runs',
      todo: 'start "petrel front", "petrel deliver" and "petrel flush"',
    });
  if (overdueWebhooks > 0)
    found.push({
      bad: true,
      what: `${overdueWebhooks} webhooks have due updates that no process delivers`,
      todo: 'start more "petrel deliver" processes',
    });
  found.push(...facts.failingWebhooks.map(ofWebhook));
  if (lostAgo !== null && lostAgo < 7 * day_ms)
    found.push({
      bad: false,
      what: 'Redis lost changes within the last week',
      todo: 'run "petrel redis rebuild" to see when and what; set appendfsync always, and give each master a replica',
    });
  return found.sort((a, b) => Number(b.bad) - Number(a.bad));
}
