/** Statements that end a bot. Its row stays, nobody's, for those who read what it wrote. */
import { noteAudit } from './audit.js';
import { lockOwned } from './ownership.js';
import { releasePictures } from './pictures.js';
import { type Database, noteStale, type Sql } from './sql.js';

/** Ends a bot of `owner`; nobody can take its username for `holdMs`. Errors: `bot_not_found`, `not_bot_owner`. */
export function deleteBot(db: Database, bot: number, owner: number, holdMs: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    await lockOwned(sql, bot, owner);
    await sql.query(
      `update bots set owner_id = null, deleted_at = now(), token_hmac = null, token_box = null, commands = '{}',
              names = '{}', descriptions = '{}', short_descriptions = '{}', write_policy = 'owner',
              version = nextval('control_versions'), write_version = nextval('control_versions'),
              descriptions_version = nextval('control_versions')
        where id = $1`,
      [bot],
    );
    await releasePictures(sql, bot);
    await sql.query('delete from bot_writers where bot_id = $1', [bot]);
    await sql.query('delete from bot_transfers where bot_id = $1', [bot]);
    await sql.query('delete from webhook_replays where bot_id = $1', [bot]);
    await sql.query(
      `update webhooks set url_box = null, secret_box = null, certificate = null, ip_address = null,
              former_signing_box = null, former_until = null, version = nextval('control_versions')
        where bot_id = $1`,
      [bot],
    );
    await sql.query(
      `update names set free_at = now() + $2::bigint * interval '1 millisecond'
        where name = (select lower(username) from bots where id = $1) and owner = $1`,
      [bot, holdMs],
    );
    await noteAudit(sql, bot, { type: 'user', id: owner }, 'deleted');
    await noteStale(sql, [
      ['bot_gone', bot],
      ['descriptions', bot],
    ]);
    return true;
  });
}

/** The version under which a deleted bot lets nobody write. Null for any other bot. */
export async function loadGone(sql: Sql, bot: number): Promise<{ readonly version: number } | null> {
  const [row] = await sql.query<{ version: number }>(
    'select write_version as version from bots where id = $1 and deleted_at is not null',
    [bot],
  );
  return row ?? null;
}

/** Has the sweep go on with what follows. */
export const askAgain = (sql: Sql, bot: number): Promise<void> => noteStale(sql, [['bot_gone', bot]]);
