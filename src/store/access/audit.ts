/**
 * Loads a bot's audit log for the owner. Each change of a bot writes its event with `noteAudit` in the transaction of
 * the change.
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
    /**
     * Returns events with ids below `before`, newest first. Omits events that happened before the current owner got the
     * bot.
     */
    list: (bot: number, before: number, limit: number) => loadAudit(db, bot, before, limit),
  };
}
