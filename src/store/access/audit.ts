/** The audit log of a bot, as its owner reads it. Changes write their own events, in their transaction: `noteAudit`. */
import { type AuditRow, loadAudit } from '../../postgres/audit.js';
import type { StoreContext } from '../core/context.js';

export {
  type AuditActor,
  type AuditEvent,
  type AuditRow,
  auditEvents,
  noteAudit,
} from '../../postgres/audit.js';

export interface Audit {
  /** What was done with a bot since its present owner has it, newest first, `cursor` as the page before gave it. */
  list(
    bot: number,
    cursor: number | null,
    limit: number,
  ): Promise<{ readonly items: readonly AuditRow[]; readonly next: number | null }>;
}

export function createAudit({ db }: StoreContext): Audit {
  return {
    async list(bot, cursor, limit) {
      const found = await loadAudit(db, bot, cursor ?? Number.MAX_SAFE_INTEGER, limit + 1);
      const items = found.slice(0, limit);
      return { items, next: found.length > limit ? (items.at(-1)?.id ?? null) : null };
    },
  };
}
