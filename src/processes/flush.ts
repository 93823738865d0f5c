/** The role `flush`: writes journals behind to Postgres, and removes files that nothing refers to. */
import { createFlusher } from '../journal/flusher.js';
import { limits } from '../limits.js';
import type { Backends } from './backends.js';
import { startEnds } from './ends.js';
import { startNoter } from './push.js';
import type { Role } from './role.js';

/** The roles that change something have stopped before this one, and Redis is stopped after it. */
async function sealAll({ recovery, keys, log }: Backends): Promise<void> {
  const all = Array.from({ length: keys.partitions.count }, (_, partition) => partition);
  await recovery
    .seal(all)
    .catch((error: Error) =>
      log.warn({ reason: error.message }, 'Redis was not sealed: the next start skips ids'),
    );
}

export function startFlush(backends: Backends): Role {
  const { config, log, connection, runner, shards, keys, store, files, figures, node } = backends;
  const noter = startNoter(backends);
  let told = Number.NEGATIVE_INFINITY;
  const flusher = createFlusher({
    connection,
    runner,
    shards,
    keys,
    hotTtlMs: config.HOT_TTL_MS,
    hotBytesPerBot: config.HOT_BYTES_PER_BOT,
    intervalMs: config.FLUSH_INTERVAL_MS,
    auditDays: config.AUDIT_DAYS,
    messageDays: config.MESSAGE_DAYS,
    onWritten: noter.written,
    onError(error) {
      if (performance.now() - told < 5_000) return;
      told = performance.now();
      log.error({ reason: error.message }, 'the flusher tries again');
    },
    onQuarantine: (entry, reason) =>
      log.error({ entity: entry.entity, version: entry.version, reason }, 'quarantined'),
  });
  const counter = (name: string, help: string, read: () => number) =>
    figures.push({ kind: 'counter', name, help, read });
  const gauge = (name: string, help: string, read: () => number) =>
    figures.push({ kind: 'gauge', name, help, read });
  counter('petrel_flush_entries_total', 'Journal entries that were settled.', () => flusher.stats().entries);
  counter('petrel_flush_rows_total', 'Rows that were sent to Postgres.', () => flusher.stats().rows);
  counter('petrel_flush_batches_total', 'Batches that were settled.', () => flusher.stats().batches);
  counter(
    'petrel_flush_quarantined_total',
    'Entries that Postgres does not take.',
    () => flusher.stats().quarantined,
  );
  counter(
    'petrel_flush_failures_total',
    'Times that what was in flight was given up, or that a partition could not be settled.',
    () => flusher.stats().failures,
  );
  counter(
    'petrel_flush_rewritten_total',
    'Entities that were written again after Postgres went back in time.',
    () => flusher.stats().rewritten,
  );
  gauge(
    'petrel_flush_lag_seconds',
    'How long what is not in Postgres has waited, of the partitions under lease here.',
    () => flusher.stats().lagMs / 1_000,
  );
  gauge(
    'petrel_flush_partitions',
    'Partitions whose lease this process holds: over all flushers, all of them.',
    () => flusher.stats().partitions,
  );
  gauge(
    'petrel_failure_days_ahead',
    'Days to come that Postgres has a partition for failures of deliveries for.',
    () => flusher.stats().daysAhead,
  );
  gauge(
    'petrel_message_days_ahead',
    'Days to come that Postgres has a partition for messages for.',
    () => flusher.stats().messageDaysAhead,
  );
  node.parts.push(() => {
    const { entries, rows, failures, quarantined, lagMs, partitions } = flusher.stats();
    return { flush: { entries, rows, failures, quarantined, lag_ms: Math.round(lagMs), partitions } };
  });
  flusher.start();
  let sweeping: Promise<unknown> | undefined;
  const sweep = setInterval(() => {
    sweeping ??= store.pictures
      .sweep(files.remove)
      .catch((error: Error) => log.error({ reason: error.message }, 'unused files stay for now'))
      .finally(() => {
        sweeping = undefined;
      });
  }, limits.unused_files_sweep_ms);
  const ends = startEnds({ config, log, store, files, figures, held: backends.held });
  return {
    async stop() {
      clearInterval(sweep);
      await Promise.all([sweeping, ends.stop(), flusher.stop({ drain: true })]);
      await noter.stop();
      if (config.PRIVATE_REDIS !== undefined) await sealAll(backends);
    },
  };
}
