/** SQL statements for the inline mode of bots (decision 0054). */
import { type Database, noteStale } from '../sql.js';
import { noteAudit } from './audit.js';
import { lockOwned } from './ownership.js';

export interface InlineMode {
  /** The text that the composer shows after the bot's username. May be empty. */
  readonly placeholder: string;
  /** Whether the bot is told which results people choose. */
  readonly feedback: boolean;
}

/** Sets the inline mode of a bot, or turns it off if `mode` is null. Errors: `bot_not_found`, `not_bot_owner`. */
export function setInlineMode(
  db: Database,
  bot: number,
  owner: number,
  mode: InlineMode | null,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    await lockOwned(sql, bot, owner);
    await sql.run`
      update bots set inline_placeholder = ${mode?.placeholder ?? null},
        inline_feedback = ${mode?.feedback ?? false}, version = nextval('control_versions')
      where id = ${bot}`;
    const details = { enabled: mode !== null, feedback: mode?.feedback ?? false };
    await noteAudit(sql, bot, { type: 'user', id: owner }, 'inline_mode_changed', details);
    await noteStale(sql, [['bot', bot]]);
    return true;
  });
}
