/** Runs the role `flush`, which writes journals to Postgres and removes files that nothing uses. */

import { fileLimits as limits } from '../files/limits.js';
import { createFlusher, type Flusher } from '../journal/flusher.js';
import { figuresOf } from '../obs/metrics.js';
import { shared } from '../shared.js';
import type { Backends } from './backends.js';
import { startCleanup } from './cleanup.js';
import { flushFigures } from './history.js';
import { startNoter } from './push.js';
import type { Role } from './role.js';

/**
 * Records in Redis that Redis was shut down cleanly. Runs after all roles that change state have stopped, and before
 * Redis stops.
 */
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

function report({ figures, node }: Backends, flusher: Flusher): void {
  figures.push(
    ...figuresOf(
      {
        petrel_flush_entries_total: 'Journal entries written to Postgres and removed from the journal.',
        petrel_flush_rows_total: 'Rows sent to Postgres.',
        petrel_flush_batches_total: 'Batches written to Postgres and removed from the journal.',
        petrel_flush_quarantined_total: 'Journal entries that Postgres refused because of their data.',
        petrel_flush_failures_total:
          'Failed flushes: a batch in flight was abandoned, or a partition could not be flushed.',
        petrel_flush_rewritten_total: 'Entities written again after Postgres lost committed transactions.',
        petrel_flush_lag_seconds:
          'Age of the oldest journal entry not yet in Postgres, over the partitions leased by this process.',
        petrel_flush_partitions:
          'Partitions leased by this process. The sum over all flushers is the number of partitions.',
        petrel_failure_days_ahead: 'Future days that have a table partition for delivery failures.',
        petrel_message_days_ahead: 'Future days that have a table partition for messages.',
      },
      () => {
        const stats = flusher.stats();
        return {
          petrel_flush_entries_total: stats.entries,
          petrel_flush_rows_total: stats.rows,
          petrel_flush_batches_total: stats.batches,
          petrel_flush_quarantined_total: stats.quarantined,
          petrel_flush_failures_total: stats.failures,
          petrel_flush_rewritten_total: stats.rewritten,
          petrel_flush_lag_seconds: stats.lagMs / 1_000,
          petrel_flush_partitions: stats.partitions,
          petrel_failure_days_ahead: stats.daysAhead,
          petrel_message_days_ahead: stats.messageDaysAhead,
        };
      },
    ),
  );
  node.parts.push(() => {
    const { entries, rows, failures, quarantined, lagMs, partitions } = flusher.stats();
    return { flush: { entries, rows, failures, quarantined, lag_ms: Math.round(lagMs), partitions } };
  });
  node.figures.push(() => flushFigures(flusher.stats().lagMs));
}

export function startFlush(backends: Backends): Role {
  const { config, time, random, log, connection, hints, runner, shards, keys, store, files } = backends;
  const noter = startNoter(backends);
  let loggedAt = Number.NEGATIVE_INFINITY;
  const flusher = createFlusher({
    time,
    random,
    connection,
    runner,
    shards,
    keys,
    hints,
    hotTtlMs: config.HOT_TTL_MS,
    hotBytesPerBot: config.HOT_BYTES_PER_BOT,
    intervalMs: config.FLUSH_INTERVAL_MS,
    auditDays: config.AUDIT_DAYS,
    messageDays: config.MESSAGE_DAYS,
    updatesDays: config.UPDATES_DAYS,
    onWritten: (rows) => noter.written(rows),
    onError(error) {
      if (time.monotonic() - loggedAt < 5_000) return;
      loggedAt = time.monotonic();
      log.error({ reason: error.message }, 'the flusher failed and will retry');
    },
    onQuarantine: (entry, reason) =>
      log.error({ entity: entry.entity, version: entry.version, reason }, 'quarantined'),
  });
  report(backends, flusher);
  flusher.start();
  const sweep = shared(() =>
    store.pictures
      .sweep(files.remove)
      .catch((error: Error) =>
        log.error({ reason: error.message }, 'unused files could not be removed: the flusher will try again'),
      ),
  );
  const sweeping = time.every(limits.unused_files_sweep_ms, sweep);
  const cleanup = startCleanup(backends);
  return {
    async stop() {
      time.cancel(sweeping);
      await Promise.all([sweep.running(), cleanup.stop(), flusher.stop({ drain: true })]);
      await noter.stop();
      if (config.PRIVATE_REDIS !== undefined) await sealAll(backends);
    },
  };
}
