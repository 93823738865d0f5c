/** SQL statements for the rules that say who may write to a bot (interface §5.8). */
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { type Database, noteStale, type Sql } from '../sql.js';
import { noteAudit } from './audit.js';
import { lockOwned } from './ownership.js';

export type WritePolicy = 'all' | 'selected' | 'owner';

/**
 * Sets who may write to a bot. For the policy `selected`, stores the ids of the people in `usernames`. Errors:
 * `bot_not_found`, `not_bot_owner`, and `username_unknown` or `username_not_person` for the first username that is not
 * a person's.
 */
export function setWriteAccess(
  db: Database,
  bot: number,
  owner: number,
  policy: WritePolicy,
  usernames: readonly string[],
): Promise<boolean> {
  return db.transaction(async (sql) => {
    await lockOwned(sql, bot, owner);
    const ids = policy === 'selected' ? await resolve(sql, usernames) : [];
    await sql.run`
      update bots set write_policy = ${policy}, write_version = nextval('control_versions')
      where id = ${bot}`;
    await sql.run`delete from bot_writers where bot_id = ${bot}`;
    await sql.run`insert into bot_writers (bot_id, user_id) select ${bot}, unnest(${ids}::bigint[])`;
    const selected = policy === 'selected' ? { users: ids.length } : {};
    await noteAudit(sql, bot, { type: 'user', id: owner }, 'write_access_changed', { policy, ...selected });
    await noteStale(sql, [['write_access', bot]]);
    return true;
  });
}

async function resolve(sql: Sql, usernames: readonly string[]): Promise<number[]> {
  const rows = await sql.rows<{ name: string; taken: boolean; id: number | null }>`
    select given.name, n.owner is not null as taken, u.id
    from unnest(${usernames}::text[]) with ordinality given (name, place)
    left join names n on n.name = lower(given.name) and n.free_at is null and n.owner <> 0
    left join users u on u.id = n.owner order by given.place`;
  const ids = new Set<number>();
  for (const { name, taken, id } of rows) {
    if (id === null) fail(taken ? 'username_not_person' : 'username_unknown', { name });
    else ids.add(id);
  }
  return [...ids];
}

export interface WriteAccessRow {
  readonly policy: WritePolicy;
  readonly version: number;
  readonly may: boolean;
}

export const loadWriteAccess = (sql: Sql, bot: number, user: number) => sql.first<WriteAccessRow>`
  select b.write_policy as policy, b.write_version as version,
       b.write_policy = 'all' or b.owner_id = ${user} or (b.write_policy = 'selected' and exists (
         select from bot_writers w where w.bot_id = b.id and w.user_id = ${user})) as may
  from bots b where b.id = ${bot} and b.deleted_at is null`;

export const loadWriters = (sql: Sql, bot: number) => sql.column<string>`
  select u.username from bot_writers w join users u on u.id = w.user_id
  where w.bot_id = ${bot} and u.username is not null order by u.id limit ${limits.writers_per_bot_max}`;
