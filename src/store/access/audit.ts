/** The audit log of a bot, as its owner reads it. Changes write their own events, in their transaction: `noteAudit`. */
import { type AuditRow, loadAudit } from '../../postgres/bots/audit.js';
import type { StoreContext } from '../core/context.js';

export {
  type AuditActor,
  type AuditEvent,
  type AuditRow,
  auditEvents,
  noteAudit,
} from '../../postgres/bots/audit.js';

export interface Audit {
  /** What was done with a bot since its present owner has it, newest first, below the event `before`. */
  list(bot: number, before: number, limit: number): Promise<readonly AuditRow[]>;
}

export function createAudit({ db }: StoreContext): Audit {
  return { list: (bot, before, limit) => loadAudit(db, bot, before, limit) };
}
