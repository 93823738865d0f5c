/** What waits in Redis over all partitions, and how full its servers are: looked at every few seconds, so that metrics are cheap. */
import { nowMs } from '../clock.js';
import { limits } from '../limits.js';
import { type Figure, gauge } from '../obs/metrics.js';
import { partitionsWith } from '../redis/present.js';
import { shownUrl } from '../redis/slots.js';
import type { Backends } from './backends.js';
import type { Role } from './role.js';

/** What waits in Redis over all partitions. */
export interface Backlog {
  journal: number;
  fullestJournal: number;
  fullestJournalBytes: number;
  outbox: number;
  webhooksDue: number;
  webhooksOverdue: number;
  /** in seconds, of the webhook that waits longest */
  webhookOverdueSeconds: number;
}

interface ServerState {
  readonly usedBytes: number;
  readonly maxBytes: number;
  /** 1 when the last write and rewrite of the append-only file went well. */
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

/** Errors: what Redis is unavailable with. */
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
  const onError = troubles.onDelay('the figures of Redis', 'what waits is told as it was before');
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
    gauge('petrel_journal_entries', 'Journal entries that wait, over all partitions.', () => backlog.journal),
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
    gauge('petrel_outbox_entries', 'Updates that wait to be forwarded to their bots.', () => backlog.outbox),
    gauge(
      'petrel_webhooks_overdue',
      'Webhooks with updates that are due and delivered by nobody.',
      () => backlog.webhooksOverdue,
    ),
    gauge(
      'petrel_webhooks_overdue_seconds',
      'How long the webhook that waits longest has been due.',
      () => backlog.webhookOverdueSeconds,
    ),
    ofServers('petrel_redis_memory_bytes', 'Memory that Redis uses.', ({ usedBytes }) => usedBytes),
    ofServers(
      'petrel_redis_memory_max_bytes',
      'Memory that Redis may use; 0 for no bound.',
      ({ maxBytes }) => maxBytes,
    ),
    ofServers(
      'petrel_redis_appending',
      '1 while Redis writes its append-only file without errors.',
      ({ appending }) => appending,
    ),
  );
  tick();
  const timer = setInterval(tick, limits.backlog_interval_ms);
  return { stop: async () => clearInterval(timer) };
}
