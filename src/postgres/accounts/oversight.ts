/** Lets operators suspend bots and people and reserve usernames (behaviour §14). */
import { fail } from '../../errors.js';
import { noteAudit } from '../bots/audit.js';
import { type Database, noteStale, type Sql } from '../sql.js';
import { takeName } from './users.js';

/** Suspends or resumes a bot. Error: `bot_not_found`. */
export function suspendBot(db: Database, bot: number, suspended: boolean): Promise<boolean> {
  return db.transaction(async (sql) => {
    const was = await sql.firstValue<boolean>`
      update bots b set suspended_at = case when ${suspended} then coalesce(b.suspended_at, now()) end,
        version = nextval('control_versions')
      from (select suspended_at is not null as was from bots where id = ${bot} for no key update) former
      where b.id = ${bot} and b.owner_id is not null returning former.was`;
    if (was === undefined) fail('bot_not_found');
    // Raises the webhook's version, so that the bot's queue pauses or resumes its deliveries.
    await sql.run`update webhooks set version = nextval('control_versions') where bot_id = ${bot}`;
    if (was !== suspended)
      await noteAudit(sql, bot, { type: 'operator' }, suspended ? 'suspended' : 'unsuspended');
    await noteStale(sql, [
      ['bot', bot],
      ['webhook', bot],
    ]);
    return true;
  });
}

/** Suspends or resumes a person. Error: `user_not_found`. */
export function suspendUser(db: Database, user: number, suspended: boolean): Promise<boolean> {
  return db.transaction(async (sql) => {
    const found = await sql.some`
      update users set suspended_at = case when ${suspended} then coalesce(suspended_at, now()) end,
        version = nextval('control_versions') where id = ${user} and deleted_at is null returning 1`;
    if (!found) fail('user_not_found');
    await noteStale(sql, [['user', user]]);
    return true;
  });
}

/** The owner of reserved usernames. No account has this id. */
const reserved = 0;

/** Reserves a username. Error: `username_taken`. */
export function reserveName(db: Database, username: string): Promise<boolean> {
  return db.transaction(async (sql) => {
    const known = await sql.some`select 1 from names where name = lower(${username}) and owner = ${reserved}`;
    if (!known) await takeName(sql, username, reserved);
    return true;
  });
}

/** Releases a reserved username. Error: `username_not_reserved`. */
export function releaseName(db: Database, username: string): Promise<boolean> {
  return db.transaction(async (sql) => {
    const released = await sql.some`
      delete from names where name = lower(${username}) and owner = ${reserved} returning 1`;
    if (!released) fail('username_not_reserved');
    return true;
  });
}

export const loadReserved = (sql: Sql, after: string, limit: number) => sql.column<string>`
  select name from names where owner = ${reserved} and name > ${after} order by name limit ${limit}`;
