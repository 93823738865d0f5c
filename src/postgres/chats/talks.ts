/** SQL statements for conversations with the management bot. */
import type { Sql } from '../sql.js';

/**
 * Loads the state of a person's conversation as it was before the update with this id. Returns null if there is no
 * state, or if the state is older than `ageMsMax`.
 */
export const loadTalk = async <T>(sql: Sql, user: number, update: number, ageMsMax: number) =>
  (await sql.firstValue<T>`
    select case when update_id = ${update} then before else state end as state from management_talks
    where user_id = ${user} and changed_at > now() - ${ageMsMax} * interval '1 millisecond'`) ?? null;

/** Stores the conversation's states before and after this update. Does nothing if a newer update has been stored. */
export async function saveTalk(
  sql: Sql,
  user: number,
  update: number,
  before: unknown,
  state: unknown,
): Promise<void> {
  await sql.run`
    insert into management_talks (user_id, update_id, before, state)
    values (${user}, ${update}, ${JSON.stringify(before)}, ${JSON.stringify(state)})
    on conflict (user_id) do update set update_id = excluded.update_id, before = excluded.before,
      state = excluded.state, changed_at = now() where management_talks.update_id < excluded.update_id`;
}
