/** Statements that delete a bot. Its row stays without an owner, for people who read the bot's messages. */
import { noteAudit } from '../bots/audit.js';
import { lockOwned } from '../bots/ownership.js';
import { releasePictures } from '../bots/pictures.js';
import { type Database, noteStale, type Sql } from '../sql.js';

/** Deletes bots within a transaction that has locked them; nobody can take their usernames for `holdMs`. */
export async function endBots(
  sql: Sql,
  bots: readonly number[],
  owner: number,
  holdMs: number,
): Promise<void> {
  if (bots.length === 0) return;
  await releasePictures(sql, bots);
  await sql.query(
    `update bots set owner_id = null, deleted_at = now(), token_hmac = null, token_box = null, commands = '{}',
            names = '{}', descriptions = '{}', short_descriptions = '{}', write_policy = 'owner',
            version = nextval('control_versions'), write_version = nextval('control_versions'),
            descriptions_version = nextval('control_versions')
      where id = any($1::bigint[])`,
    [bots],
  );
  for (const table of ['bot_writers', 'bot_transfers'])
    await sql.query(`delete from ${table} where bot_id = any($1::bigint[])`, [bots]);
  await sql.query(
    `update webhooks set url_box = null, secret_box = null, certificate = null, ip_address = null,
            former_signing_box = null, former_until = null, version = nextval('control_versions')
      where bot_id = any($1::bigint[])`,
    [bots],
  );
  await sql.query(
    `update names n set free_at = now() + $2::bigint * interval '1 millisecond'
       from bots b where b.id = any($1::bigint[]) and n.name = lower(b.username) and n.owner = b.id`,
    [bots, holdMs],
  );
  for (const bot of bots) await noteAudit(sql, bot, { type: 'user', id: owner }, 'deleted');
  await noteStale(
    sql,
    bots.flatMap((bot) => [['bot_gone', bot] as const, ['descriptions', bot] as const]),
  );
}

/** Deletes a bot of `owner`; nobody can take its username for `holdMs`. Errors: `bot_not_found`, `not_bot_owner`. */
export function deleteBot(db: Database, bot: number, owner: number, holdMs: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    await lockOwned(sql, bot, owner);
    await endBots(sql, [bot], owner, holdMs);
    return true;
  });
}

/** The version of the change that closed a deleted bot to all writers. Null for any other bot. */
export async function loadGone(sql: Sql, bot: number): Promise<{ readonly version: number } | null> {
  const [row] = await sql.query<{ version: number }>(
    'select write_version as version from bots where id = $1 and deleted_at is not null',
    [bot],
  );
  return row ?? null;
}

/** Makes the sweep continue with the next step of a bot's removal. */
export const askAgain = (sql: Sql, bot: number): Promise<void> => noteStale(sql, [['bot_gone', bot]]);
