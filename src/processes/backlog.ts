/** Counts backlogs over all partitions, and the memory of the Redis servers, every few seconds for the metrics. */
import { nowMs } from '../clock.js';
import { limits } from '../limits.js';
import { type Figure, gauge } from '../obs/metrics.js';
import { partitionsWith } from '../redis/present.js';
import { shownUrl } from '../redis/slots.js';
import type { Backends } from './backends.js';
import type { Role } from './role.js';

/** Numbers of pending items in Redis, over all partitions. */
export interface Backlog {
  journal: number;
  fullestJournal: number;
  fullestJournalBytes: number;
  outbox: number;
  webhooksDue: number;
  webhooksOverdue: number;
  /** Seconds since the most overdue webhook was due. */
  webhookOverdueSeconds: number;
}

interface ServerState {
  readonly usedBytes: number;
  readonly maxBytes: number;
  /** 1 when the last write and rewrite of the append-only file succeeded. */
  readonly appending: number;
}

const number = (info: string, name: string) =>
  Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
const isOk = (info: string, name: string) => !new RegExp(`^${name}:err`, 'm').test(info);

function stateOf(info: string): ServerState {
  const appending = isOk(info, 'aof_last_write_status') && isOk(info, 'aof_last_bgrewrite_status');
  return {
    usedBytes: number(info, 'used_memory'),
    maxBytes: number(info, 'maxmemory'),
    appending: appending ? 1 : 0,
  };
}

const nothingWaits = (): Backlog => ({
  ...{ journal: 0, fullestJournal: 0, fullestJournalBytes: 0, outbox: 0 },
  ...{ webhooksDue: 0, webhooksOverdue: 0, webhookOverdueSeconds: 0 },
});

/** Reads the backlogs and the state of the Redis servers. Errors: `unavailable`. */
export async function readBacklog({
  connection,
  keys,
}: Pick<Backends, 'connection' | 'keys'>): Promise<Backlog> {
  const found = nothingWaits();
  const now = nowMs();
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

export function startBacklog({ connection, keys, troubles, figures }: Backends): Role {
  const onError = troubles.onDelay(
    'counting the backlogs in Redis',
    'the metrics keep the last known counts',
  );
  let backlog = nothingWaits();
  const servers = new Map<string, ServerState>();
  let looking = false;

  async function look(): Promise<void> {
    backlog = await readBacklog({ connection, keys });
    const present = connection.nodes();
    const names = present.map(({ url }) => shownUrl(url));
    for (const name of servers.keys()) if (!names.includes(name)) servers.delete(name);
    for (const { url, client } of present)
      servers.set(shownUrl(url), stateOf(await client.info('memory', 'persistence')));
  }

  function tick(): void {
    if (looking) return;
    looking = true;
    look()
      .catch(onError)
      .finally(() => {
        looking = false;
      });
  }

  const ofServers = (name: string, help: string, read: (state: ServerState) => number): Figure => ({
    ...{ kind: 'gauge', name, help, labels: ['server'] },
    *read() {
      for (const [server, state] of servers) yield [[server], read(state)];
    },
  });
  figures.push(
    gauge(
      'petrel_journal_entries',
      'Journal entries waiting to be written to Postgres, over all partitions.',
      () => backlog.journal,
    ),
    gauge(
      'petrel_journal_fullest',
      'Entries in the fullest journal; changes are refused above petrel_journal_high_water.',
      () => backlog.fullestJournal,
    ),
    gauge(
      'petrel_journal_fullest_bytes',
      'Bytes of the largest journal; changes are refused above petrel_journal_bytes_max.',
      () => backlog.fullestJournalBytes,
    ),
    gauge(
      'petrel_outbox_entries',
      'Updates waiting in outboxes to be forwarded to bots.',
      () => backlog.outbox,
    ),
    gauge(
      'petrel_webhooks_overdue',
      'Webhooks with due updates that no process delivers.',
      () => backlog.webhooksOverdue,
    ),
    gauge(
      'petrel_webhooks_overdue_seconds',
      'Seconds since the most overdue webhook was due.',
      () => backlog.webhookOverdueSeconds,
    ),
    ofServers('petrel_redis_memory_bytes', 'Memory used by Redis.', ({ usedBytes }) => usedBytes),
    ofServers(
      'petrel_redis_memory_max_bytes',
      'Memory limit of Redis; 0 when unlimited.',
      ({ maxBytes }) => maxBytes,
    ),
    ofServers(
      'petrel_redis_appending',
      '1 while Redis writes its append-only file without errors, else 0.',
      ({ appending }) => appending,
    ),
  );
  tick();
  const timer = setInterval(tick, limits.backlog_interval_ms);
  return { stop: async () => clearInterval(timer) };
}
