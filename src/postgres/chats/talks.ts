/** Statements on conversations with the management bot. */
import type { Sql } from '../sql.js';

/**
 * State of a person's conversation before the update with this id. Null when there is none, or it is older than
 * `ageMsMax`.
 */
export async function loadTalk<T>(
  sql: Sql,
  user: number,
  update: number,
  ageMsMax: number,
): Promise<T | null> {
  const [row] = await sql.query<{ state: T }>(
    `select case when update_id = $2 then before else state end as state from management_talks
      where user_id = $1 and changed_at > now() - $3 * interval '1 millisecond'`,
    [user, update, ageMsMax],
  );
  return row?.state ?? null;
}

/** Stores the state that follows `before` after this update. An update that is not the latest changes nothing. */
export async function saveTalk(
  sql: Sql,
  user: number,
  update: number,
  before: unknown,
  state: unknown,
): Promise<void> {
  await sql.query(
    `insert into management_talks (user_id, update_id, before, state) values ($1, $2, $3, $4)
     on conflict (user_id) do update set update_id = $2, before = $3, state = $4, changed_at = now()
      where management_talks.update_id < $2`,
    [user, update, JSON.stringify(before), JSON.stringify(state)],
  );
}
