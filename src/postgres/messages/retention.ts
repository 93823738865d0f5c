/** Statements on rows past their age: which process deletes them next, and the oldest row of each chat. */
import type { Database, Sql } from '../sql.js';

/** Position that a pass has reached, and whether it is complete. */
export interface Step<P> {
  readonly place: P;
  readonly over: boolean;
}

/**
 * Runs the next step of a pass over one kind of data, from where the last step ended or else from `begin`. One
 * process at a time works on a kind; a process that dies leaves the position unchanged, so a step may be repeated. A
 * step must end within limits.retention_piece_ms. A new pass begins `restMs` after the last one ended. Returns null
 * when no step is due.
 */
export function takePiece<P>(
  db: Database,
  what: string,
  restMs: number,
  begin: P,
  work: (sql: Sql, place: P) => Promise<Step<P>>,
): Promise<Step<P> | null> {
  return db.transaction(async (sql) => {
    await sql.query('insert into retention (what) values ($1) on conflict do nothing', [what]);
    const [row] = await sql.query<{ place: P | null }>(
      `select place from retention
        where what = $1 and (place is not null or ended_at is null or ended_at <= now() - $2::bigint * interval '1 millisecond')
        for update skip locked`,
      [what, restMs],
    );
    if (row === undefined) return null;
    const done = await work(sql, row.place ?? begin);
    await sql.query(
      'update retention set place = $2, ended_at = case when $3 then clock_timestamp() else ended_at end where what = $1',
      [what, done.over ? null : JSON.stringify(done.place), done.over],
    );
    return done;
  });
}

/** Name of a partition of messages, which is also the name of its table. */
type Partition = string;

/** The default partition, with messages of days without a partition. */
export const strayMessages: Partition = 'messages_default';

export async function hasStrays(sql: Sql): Promise<boolean> {
  const [row] = await sql.query<{ some: boolean }>(`select exists (select from ${strayMessages}) as some`);
  return row?.some === true;
}

export interface OldestRow {
  readonly chat_id: number;
  readonly user_id: number;
  /** the first bytes of the oldest message, with its header; null if no message is left */
  readonly head: Buffer | null;
}

/** Greater than the length of any record header. */
const headBytes = 96;

/** Chats after the given one, ordered by key, each with its oldest message in a partition. */
export function loadOldest(
  sql: Sql,
  partition: Partition,
  chat: number,
  user: number,
  limit: number,
): Promise<OldestRow[]> {
  return sql.query<OldestRow>(
    `select s.chat_id, s.user_id, m.head
       from (select chat_id, user_id from chat_sequences where (chat_id, user_id) > ($1::bigint, $2::bigint)
              order by chat_id, user_id limit $3) s
       left join lateral (
         select substring(record from 1 for ${headBytes}) as head from ${partition}
          where chat_id = s.chat_id and user_id = s.user_id and record is not null
          order by message_id limit 1) m on true
      order by 1, 2`,
    [chat, user, limit],
  );
}

export interface RecordRow {
  readonly message_id: number;
  readonly record: Buffer;
}

/** Messages of a chat in a partition with ids greater than `after` that are not deleted, the oldest first. */
export function loadFrom(
  sql: Sql,
  partition: Partition,
  chat: number,
  user: number,
  after: number,
  limit: number,
): Promise<RecordRow[]> {
  return sql.query<RecordRow>(
    `select message_id, record from ${partition}
      where chat_id = $1 and user_id = $2 and message_id > $3 and record is not null
      order by message_id limit $4`,
    [chat, user, after, limit],
  );
}

/** Deletes messages of a deleted chat. Nobody can read them again. */
export async function deleteMessages(
  sql: Sql,
  partition: Partition,
  chat: number,
  user: number,
  ids: readonly number[],
): Promise<void> {
  await sql.query(`delete from ${partition} where chat_id = $1 and user_id = $2 and message_id = any($3)`, [
    chat,
    user,
    ids,
  ]);
}

export interface ChatRow {
  readonly chat_id: number;
  readonly user_id: number;
}

/** Messages of groups and channels in a partition that are not deleted, ordered by key. */
export function loadShared(
  sql: Sql,
  partition: Partition,
  after: { readonly chat: number; readonly message: number },
  limit: number,
): Promise<Array<ChatRow & RecordRow>> {
  return sql.query(
    `select chat_id, user_id, message_id, record from ${partition}
      where chat_id < 0 and (chat_id, user_id, message_id) > ($1::bigint, 0, $2::bigint) and record is not null
      order by chat_id, user_id, message_id limit $3`,
    [after.chat, after.message, limit],
  );
}

/** Pins of chats after the given one, ordered by key. */
export function loadPins(
  sql: Sql,
  after: { readonly chat: number; readonly user: number },
  limit: number,
): Promise<Array<ChatRow & { readonly record: Buffer }>> {
  return sql.query(
    `select chat_id, user_id, record from chat_pins
      where (chat_id, user_id) > ($1::bigint, $2::bigint) and record is not null
      order by chat_id, user_id limit $3`,
    [after.chat, after.user, limit],
  );
}

/** The messages among these that are in a partition. */
export function loadThese(
  sql: Sql,
  partition: Partition,
  keys: ReadonlyArray<readonly [chat: number, user: number, message: number]>,
): Promise<Array<ChatRow & RecordRow>> {
  return sql.query(
    `select chat_id, user_id, message_id, m.record
       from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as k (chat_id, user_id, message_id)
       join ${partition} m using (chat_id, user_id, message_id)
      where m.record is not null`,
    [0, 1, 2].map((column) => keys.map((key) => key[column])),
  );
}

/** Number of rows of a partition, as last estimated by Postgres. */
export async function estimateRows(sql: Sql, partition: Partition): Promise<number> {
  const [row] = await sql.query<{ rows: number }>(
    'select greatest(reltuples, 0)::bigint as rows from pg_class where oid = $1::regclass',
    [partition],
  );
  return row?.rows ?? 0;
}

/** The stored files among these that are pictures of bots. */
export async function picturesAmong(sql: Sql, keys: readonly string[]): Promise<Set<string>> {
  const rows = await sql.query<{ key: string }>(
    `select k.key from unnest($1::text[]) k (key) where exists (
       select from bots b
        where b.pictures @> jsonb_build_object('avatar', jsonb_build_array(jsonb_build_object('key', k.key)))
           or b.pictures @> jsonb_build_object('start_picture', jsonb_build_array(jsonb_build_object('key', k.key))))`,
    [keys],
  );
  return new Set(rows.map(({ key }) => key));
}
