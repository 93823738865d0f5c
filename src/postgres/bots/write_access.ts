/** Statements on who may write to a bot (interface §5.8). */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { type Database, noteStale, type Sql } from '../sql.js';
import { noteAudit } from './audit.js';
import { lockOwned } from './ownership.js';

export type WritePolicy = 'all' | 'selected' | 'owner';

/**
 * Sets who may write to a bot of `owner`. `usernames` apply to the policy `selected` and are stored as ids. Errors:
 * `bot_not_found`, `not_bot_owner`, and for the first username that does not name a person `username_unknown` or
 * `username_not_person`.
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
    await sql.query(
      "update bots set write_policy = $2, write_version = nextval('control_versions') where id = $1",
      [bot, policy],
    );
    await sql.query('delete from bot_writers where bot_id = $1', [bot]);
    await sql.query('insert into bot_writers (bot_id, user_id) select $1, unnest($2::bigint[])', [bot, ids]);
    const selected = policy === 'selected' ? { users: ids.length } : {};
    await noteAudit(sql, bot, { type: 'user', id: owner }, 'write_access_changed', { policy, ...selected });
    await noteStale(sql, [['write_access', bot]]);
    return true;
  });
}

/** Ids of the people with these usernames, each once. */
async function resolve(sql: Sql, usernames: readonly string[]): Promise<number[]> {
  const rows = await sql.query<{ name: string; taken: boolean; id: number | null }>(
    `select given.name, n.owner is not null as taken, u.id
       from unnest($1::text[]) with ordinality given (name, place)
       left join names n on n.name = lower(given.name) and n.free_at is null and n.owner <> 0
       left join users u on u.id = n.owner order by given.place`,
    [usernames],
  );
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
  /** whether the given person may write */
  readonly may: boolean;
}

/** Who may write to a bot, and whether this person may. Null when the bot does not exist or was deleted. */
export async function loadWriteAccess(sql: Sql, bot: number, user: number): Promise<WriteAccessRow | null> {
  const [row] = await sql.query<WriteAccessRow>(
    `select b.write_policy as policy, b.write_version as version,
            b.write_policy = 'all' or b.owner_id = $2 or (b.write_policy = 'selected' and exists (
              select from bot_writers w where w.bot_id = b.id and w.user_id = $2)) as may
       from bots b where b.id = $1 and b.deleted_at is null`,
    [bot, user],
  );
  return row ?? null;
}

/**
 * Current usernames of the people selected as writers of a bot, at most limits.writers_per_bot_max, ordered by their
 * ids; people without a username are left out.
 */
export async function loadWriters(sql: Sql, bot: number): Promise<string[]> {
  const rows = await sql.query<{ username: string }>(
    `select u.username from bot_writers w join users u on u.id = w.user_id
      where w.bot_id = $1 and u.username is not null order by u.id limit ${limits.writers_per_bot_max}`,
    [bot],
  );
  return rows.map(({ username }) => username);
}
