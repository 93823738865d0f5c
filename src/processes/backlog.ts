/**
 * Provides metrics that are collected on demand: the pending work in all partitions, and the memory of the Redis
 * servers.
 */

import { type Figure, figuresOf } from '../obs/metrics.js';
import { partitionsWith } from '../redis/present.js';
import { shownUrl } from '../redis/slots.js';
import { shared } from '../shared.js';
import type { Backends } from './backends.js';
import { parseInfo } from './facts.js';
import { processLimits as limits } from './limits.js';
import type { Role } from './role.js';

/** How many items are pending in all partitions. */
export interface Backlog {
  journal: number;
  fullestJournal: number;
  fullestJournalBytes: number;
  outbox: number;
  webhooksDue: number;
  webhooksOverdue: number;
  /** For how many seconds the most overdue webhook has been due. */
  webhookOverdueSeconds: number;
}

type ServerState = Pick<ReturnType<typeof parseInfo>, 'used' | 'max' | 'appending'>;

const nothingWaits = (): Backlog => ({
  ...{ journal: 0, fullestJournal: 0, fullestJournalBytes: 0, outbox: 0 },
  ...{ webhooksDue: 0, webhooksOverdue: 0, webhookOverdueSeconds: 0 },
});

/** Counts pending items. Throws `unavailable`. */
export async function readBacklog({
  connection,
  keys,
  time,
}: Pick<Backends, 'connection' | 'keys' | 'time'>): Promise<Backlog> {
  const found = nothingWaits();
  const now = time.now();
  const lookAt = async (partition: number) => {
    const client = connection.at(partition)?.client;
    if (!client) return;
    const due = keys.webhooksDue(partition);
    const [journal, [added, trimmed], outbox, all, overdue, [, first] = []] = await Promise.all([
      client.xlen(keys.journal(partition)),
      client.hmget(keys.meta(partition), 'jw', 'jt'),
      client.xlen(keys.outbox(partition)),
      client.zcard(due),
      client.zcount(due, '-inf', now),
      client.zrange(due, '0', '0', 'WITHSCORES'),
    ]);
    found.journal += journal;
    found.fullestJournal = Math.max(found.fullestJournal, journal);
    const bytes = Number(added ?? 0) - Number(trimmed ?? 0);
    found.fullestJournalBytes = Math.max(found.fullestJournalBytes, bytes);
    found.outbox += outbox;
    found.webhooksDue += all;
    found.webhooksOverdue += overdue;
    const late = first === undefined ? 0 : (now - Number(first)) / 1_000;
    found.webhookOverdueSeconds = Math.max(found.webhookOverdueSeconds, late);
  };
  const waiting = await partitionsWith(connection, keys.partitions.count, (partition) => [
    keys.journal(partition),
    keys.outbox(partition),
    keys.webhooksDue(partition),
  ]);
  await Promise.all(waiting.map(lookAt));
  return found;
}

export function startBacklog({ connection, keys, time, troubles, figures }: Backends): Role {
  const onError = troubles.onDelay(
    'counting the backlogs in Redis',
    'the metrics keep the last known counts',
  );
  let backlog = nothingWaits();
  let servers: ReadonlyArray<readonly [server: string, state: ServerState]> = [];
  let countedAt = Number.NEGATIVE_INFINITY;

  const count = shared(async () => {
    backlog = await readBacklog({ connection, keys, time });
    servers = await Promise.all(
      connection
        .nodes()
        .map(async ({ url, client }) => [
          shownUrl(url),
          parseInfo(await client.info('memory', 'persistence')),
        ]),
    );
    countedAt = time.monotonic();
  });

  /** Counts again only if the last count is too old. All metrics of one scrape thus come from the same count. */
  async function refresh(): Promise<void> {
    if (time.monotonic() - countedAt <= limits.backlog_age_ms_max) return;
    await time.within(limits.backlog_wait_ms_max, count().catch(onError));
  }

  const ofServers = (name: string, help: string, value: keyof ServerState): Figure => ({
    ...{ kind: 'gauge', name, help, labels: ['server'] },
    async read() {
      await refresh();
      return servers.map(([server, state]) => [[server], Number(state[value])]);
    },
  });
  figures.push(
    ...figuresOf(
      {
        petrel_journal_entries: 'Journal entries waiting to be written to Postgres, over all partitions.',
        petrel_journal_fullest:
          'Entries in the fullest journal; changes are refused above petrel_journal_high_water.',
        petrel_journal_fullest_bytes:
          'Bytes of the largest journal; changes are refused above petrel_journal_bytes_max.',
        petrel_outbox_entries: 'Updates waiting in outboxes to be forwarded to bots.',
        petrel_webhooks_overdue: 'Webhooks with due updates that no process delivers.',
        petrel_webhooks_overdue_seconds: 'Seconds since the most overdue webhook was due.',
      },
      async () => {
        await refresh();
        return {
          petrel_journal_entries: backlog.journal,
          petrel_journal_fullest: backlog.fullestJournal,
          petrel_journal_fullest_bytes: backlog.fullestJournalBytes,
          petrel_outbox_entries: backlog.outbox,
          petrel_webhooks_overdue: backlog.webhooksOverdue,
          petrel_webhooks_overdue_seconds: backlog.webhookOverdueSeconds,
        };
      },
    ),
    ofServers('petrel_redis_memory_bytes', 'Memory used by Redis.', 'used'),
    ofServers('petrel_redis_memory_max_bytes', 'Memory limit of Redis; 0 when unlimited.', 'max'),
    ofServers(
      'petrel_redis_appending',
      '1 while Redis writes its append-only file without errors, else 0.',
      'appending',
    ),
  );
  return { stop: async () => undefined };
}
