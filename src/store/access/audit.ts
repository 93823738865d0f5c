/**
 * Loads a bot's audit log for the bot's owner. Each change of a bot calls `noteAudit` in its transaction to write an
 * event.
 */
import { loadAudit } from '../../postgres/bots/audit.js';
import type { StoreContext } from '../core/context.js';

export {
  type AuditActor,
  type AuditEvent,
  type AuditRow,
  auditEvents,
  noteAudit,
} from '../../postgres/bots/audit.js';

export type Audit = ReturnType<typeof createAudit>;

export function createAudit({ db }: StoreContext) {
  return {
    /** Returns events with ids below `before`, newest first. Omits events from before the current owner got the bot. */
    list: (bot: number, before: number, limit: number) => loadAudit(db, bot, before, limit),
  };
}
