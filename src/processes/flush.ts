/** The role `flush`: writes journals to Postgres and removes unreferenced files. */
import { createFlusher } from '../journal/flusher.js';
import { limits } from '../limits.js';
import type { Backends } from './backends.js';
import { startEnds } from './ends.js';
import { startNoter } from './push.js';
import type { Role } from './role.js';

/** Seals Redis for a clean shutdown. The roles that change state have stopped before this one; Redis stops after it. */
async function sealAll({ recovery, keys, log }: Backends): Promise<void> {
  const all = Array.from({ length: keys.partitions.count }, (_, partition) => partition);
  await recovery
    .seal(all)
    .catch((error: Error) =>
      log.warn(
        { reason: error.message },
        'could not record that Redis was shut down cleanly: the next start will skip ids',
      ),
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
      log.error({ reason: error.message }, 'the flusher failed and retries');
    },
    onQuarantine: (entry, reason) =>
      log.error({ entity: entry.entity, version: entry.version, reason }, 'quarantined'),
  });
  const counter = (name: string, help: string, read: () => number) =>
    figures.push({ kind: 'counter', name, help, read });
  const gauge = (name: string, help: string, read: () => number) =>
    figures.push({ kind: 'gauge', name, help, read });
  counter(
    'petrel_flush_entries_total',
    'Journal entries written to Postgres and removed from the journal.',
    () => flusher.stats().entries,
  );
  counter('petrel_flush_rows_total', 'Rows sent to Postgres.', () => flusher.stats().rows);
  counter(
    'petrel_flush_batches_total',
    'Batches written to Postgres and removed from the journal.',
    () => flusher.stats().batches,
  );
  counter(
    'petrel_flush_quarantined_total',
    'Journal entries that Postgres refused because of their data.',
    () => flusher.stats().quarantined,
  );
  counter(
    'petrel_flush_failures_total',
    'Failed flushes: a batch in flight was abandoned, or a partition could not be flushed.',
    () => flusher.stats().failures,
  );
  counter(
    'petrel_flush_rewritten_total',
    'Entities written again after Postgres lost committed transactions.',
    () => flusher.stats().rewritten,
  );
  gauge(
    'petrel_flush_lag_seconds',
    'Age of the oldest journal entry not yet in Postgres, over the partitions leased by this process.',
    () => flusher.stats().lagMs / 1_000,
  );
  gauge(
    'petrel_flush_partitions',
    'Partitions leased by this process. The sum over all flushers is the number of partitions.',
    () => flusher.stats().partitions,
  );
  gauge(
    'petrel_failure_days_ahead',
    'Future days that have a table partition for delivery failures.',
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
      .catch((error: Error) =>
        log.error({ reason: error.message }, 'removing unused files failed: it is retried later'),
      )
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
