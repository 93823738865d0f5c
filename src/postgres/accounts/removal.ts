/**
 * SQL statements that delete a bot. The row of the bot stays, without an owner, because people can still read the
 * bot's messages.
 */
import { noteAudit } from '../bots/audit.js';
import { lockOwned } from '../bots/ownership.js';
import { releasePictures } from '../bots/pictures.js';
import { type Database, fragment, noteStale, type Sql } from '../sql.js';

/** Deletes bots inside the transaction that locked them. Nobody else can take their usernames for `holdMs`. */
export async function endBots(
  sql: Sql,
  bots: readonly number[],
  owner: number,
  holdMs: number,
): Promise<void> {
  if (bots.length === 0) return;
  await releasePictures(sql, bots);
  await sql.run`
    update bots set owner_id = null, deleted_at = now(), token_hmac = null, token_box = null, commands = '{}',
      names = '{}', descriptions = '{}', short_descriptions = '{}', menu_button = null, default_rights = '{}',
      write_policy = 'owner',
      version = nextval('control_versions'), write_version = nextval('control_versions'),
      descriptions_version = nextval('control_versions')
    where id = any(${bots}::bigint[])`;
  for (const table of ['bot_writers', 'bot_menu_buttons', 'bot_transfers', 'sticker_sets', 'failing_routes'])
    await sql.run`delete from ${fragment(table)} where bot_id = any(${bots}::bigint[])`;
  await sql.run`
    update webhooks set url_box = null, secret_box = null, routes_box = null, certificate = null, ip_address = null,
      former_signing_box = null, former_until = null, version = nextval('control_versions')
    where bot_id = any(${bots}::bigint[])`;
  await sql.run`
    update names n set free_at = now() + ${holdMs}::bigint * interval '1 millisecond'
    from bots b where b.id = any(${bots}::bigint[]) and n.name = lower(b.username) and n.owner = b.id`;
  for (const bot of bots) await noteAudit(sql, bot, { type: 'user', id: owner }, 'deleted');
  await noteStale(
    sql,
    bots.flatMap((bot) => [['bot_gone', bot] as const, ['descriptions', bot] as const]),
  );
}

/** Deletes a bot. Nobody else can take its username for `holdMs`. Errors: `bot_not_found`, `not_bot_owner`. */
export function deleteBot(db: Database, bot: number, owner: number, holdMs: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    await lockOwned(sql, bot, owner);
    await endBots(sql, [bot], owner, holdMs);
    return true;
  });
}

/**
 * Loads `write_version` of a deleted bot. From this version on, nobody can write to the bot. Returns null if the bot is
 * not deleted.
 */
export const loadGone = (sql: Sql, bot: number) => sql.first<{ version: number }>`
  select write_version as version from bots where id = ${bot} and deleted_at is not null`;

/** Makes the outbox sweep run the next step of a bot's removal. */
export const askAgain = (sql: Sql, bot: number): Promise<void> => noteStale(sql, [['bot_gone', bot]]);
