/** The role `flush`: writes journals behind to Postgres. */
import { createFlusher } from '../journal/flusher.js';
import type { Backends } from './backends.js';
import type { Role } from './role.js';

export function startFlush({ config, log, connection, runner, pool, keys }: Backends): Role {
  let told = Number.NEGATIVE_INFINITY;
  const flusher = createFlusher({
    connection,
    runner,
    pool,
    keys,
    hotTtlMs: config.HOT_TTL_MS,
    intervalMs: config.FLUSH_INTERVAL_MS,
    auditDays: config.AUDIT_DAYS,
    onError(error) {
      if (performance.now() - told < 5_000) return;
      told = performance.now();
      log.error({ reason: error.message }, 'the flusher tries again');
    },
    onQuarantine: (entry, reason) =>
      log.error({ entity: entry.entity, version: entry.version, reason }, 'quarantined'),
  });
  flusher.start();
  return { stop: () => flusher.stop({ drain: true }) };
}
