/** The role `flush`: writes journals behind to Postgres, and removes files that nothing refers to. */
import { createFlusher } from '../journal/flusher.js';
import { limits } from '../limits.js';
import type { Backends } from './backends.js';
import { startEnds } from './ends.js';
import type { Role } from './role.js';

export function startFlush({
  config,
  log,
  connection,
  runner,
  pool,
  keys,
  store,
  files,
  figures,
}: Backends): Role {
  let told = Number.NEGATIVE_INFINITY;
  const flusher = createFlusher({
    connection,
    runner,
    pool,
    keys,
    hotTtlMs: config.HOT_TTL_MS,
    intervalMs: config.FLUSH_INTERVAL_MS,
    auditDays: config.AUDIT_DAYS,
    messageDays: config.MESSAGE_DAYS,
    onError(error) {
      if (performance.now() - told < 5_000) return;
      told = performance.now();
      log.error({ reason: error.message }, 'the flusher tries again');
    },
    onQuarantine: (entry, reason) =>
      log.error({ entity: entry.entity, version: entry.version, reason }, 'quarantined'),
  });
  figures.push(
    ['petrel_flush_entries', 'Journal entries that were settled.', () => flusher.stats().entries],
    ['petrel_flush_rows', 'Rows that were sent to Postgres.', () => flusher.stats().rows],
    ['petrel_flush_quarantined', 'Entries that Postgres does not take.', () => flusher.stats().quarantined],
    ['petrel_flush_failures', 'Times that what was in flight was given up.', () => flusher.stats().failures],
    ['petrel_flush_lag_ms', 'How long what is not in Postgres has waited.', () => flusher.stats().lagMs],
  );
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
  const ends = startEnds({ config, log, store, files, figures });
  return {
    async stop() {
      clearInterval(sweep);
      await Promise.all([sweeping, ends.stop(), flusher.stop({ drain: true })]);
    },
  };
}
