/** A bot's audit log, as its owner reads it. Each change writes its own event in its transaction, with `noteAudit`. */
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
  /** Events since the bot got its current owner, with ids below `before`, newest first. */
  list(bot: number, before: number, limit: number): Promise<readonly AuditRow[]>;
}

export function createAudit({ db }: StoreContext): Audit {
  return { list: (bot, before, limit) => loadAudit(db, bot, before, limit) };
}
