/** Statements that operators use to suspend bots and people and to reserve usernames (behaviour §14). */
import { fail } from '../../errors.js';
import { noteAudit } from '../bots/audit.js';
import { type Database, noteStale, type Sql } from '../sql.js';
import { takeName } from './users.js';

/** Suspends a bot, or ends its suspension. Error: `bot_not_found`. */
export function suspendBot(db: Database, bot: number, suspended: boolean): Promise<boolean> {
  return db.transaction(async (sql) => {
    const rows = await sql.query<{ was: boolean }>(
      `update bots b set suspended_at = case when $2 then coalesce(b.suspended_at, now()) end,
              version = nextval('control_versions')
         from (select suspended_at is not null as was from bots where id = $1 for no key update) former
        where b.id = $1 and b.owner_id is not null returning former.was`,
      [bot, suspended],
    );
    const [row] = rows;
    if (row === undefined) return fail('bot_not_found');
    // A new version of the webhook makes the queue apply the suspension to deliveries.
    await sql.query("update webhooks set version = nextval('control_versions') where bot_id = $1", [bot]);
    if (row.was !== suspended)
      await noteAudit(sql, bot, { type: 'operator' }, suspended ? 'suspended' : 'unsuspended');
    await noteStale(sql, [
      ['bot', bot],
      ['webhook', bot],
    ]);
    return true;
  });
}

/** Suspends a person, or ends the suspension. Error: `user_not_found`. */
export function suspendUser(db: Database, user: number, suspended: boolean): Promise<boolean> {
  return db.transaction(async (sql) => {
    const rows = await sql.query(
      `update users set suspended_at = case when $2 then coalesce(suspended_at, now()) end,
              version = nextval('control_versions') where id = $1 and deleted_at is null returning 1`,
      [user, suspended],
    );
    if (rows.length === 0) fail('user_not_found');
    await noteStale(sql, [['user', user]]);
    return true;
  });
}

/** Owner id of usernames that nobody may take. */
const reserved = 0;

/** Reserves a username, so that nobody can take it. Error: `username_taken`. */
export function reserveName(db: Database, username: string): Promise<boolean> {
  return db.transaction(async (sql) => {
    const [row] = await sql.query('select 1 from names where name = lower($1) and owner = $2', [
      username,
      reserved,
    ]);
    if (row === undefined) await takeName(sql, username, reserved);
    return true;
  });
}

/** Ends the reservation of a username. Error: `username_not_reserved`. */
export function releaseName(db: Database, username: string): Promise<boolean> {
  return db.transaction(async (sql) => {
    const rows = await sql.query('delete from names where name = lower($1) and owner = $2 returning 1', [
      username,
      reserved,
    ]);
    if (rows.length === 0) fail('username_not_reserved');
    return true;
  });
}

/** Reserved usernames after the given one, in alphabetical order. */
export async function loadReserved(sql: Sql, after: string, limit: number): Promise<string[]> {
  const rows = await sql.query<{ name: string }>(
    'select name from names where owner = $1 and name > $2 order by name limit $3',
    [reserved, after, limit],
  );
  return rows.map(({ name }) => name);
}
