/** Holds SQL statements for the inline mode of bots (decision 0054). */
import { type Database, noteStale } from '../sql.js';
import { noteAudit } from './audit.js';
import { lockOwned } from './ownership.js';

/** The inline mode of a bot. */
export interface InlineMode {
  /** The text in the composer after the username of the bot. May be empty. */
  readonly placeholder: string;
  /** Whether the bot learns which results people choose. */
  readonly feedback: boolean;
}

/**
 * Sets the inline mode of a bot of `owner`. If the mode is null, turns inline mode off. Errors: `bot_not_found`,
 * `not_bot_owner`.
 */
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
