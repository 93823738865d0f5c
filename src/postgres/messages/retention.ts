/** Deletes rows past their maximum age, in steps, and records where the next step starts. */
import { type Database, fragment, type Sql } from '../sql.js';

export interface Step<P> {
  readonly place: P;
  readonly over: boolean;
}

/**
 * Runs the next step of a pass over one kind of data. The step starts where the previous step ended; a new pass starts
 * at `begin`, and not earlier than `restMs` after the previous pass has ended. Only one process at a time works on a
 * kind of data. If this process dies during a step, the stored position does not move and the step is repeated. A step
 * must end within limits.retention_piece_ms. Returns null if no step is due.
 */
export function takePiece<P>(
  db: Database,
  what: string,
  restMs: number,
  begin: P,
  work: (sql: Sql, place: P) => Promise<Step<P>>,
): Promise<Step<P> | null> {
  return db.transaction(async (sql) => {
    await sql.run`insert into retention (what) values (${what}) on conflict do nothing`;
    const place = await sql.firstValue<P | null>`
      select place from retention
      where what = ${what} and (place is not null or ended_at is null
        or ended_at <= now() - ${restMs}::bigint * interval '1 millisecond')
      for update skip locked`;
    if (place === undefined) return null;
    const done = await work(sql, place ?? begin);
    await sql.run`
      update retention set place = ${done.over ? null : JSON.stringify(done.place)},
        ended_at = case when ${done.over} then clock_timestamp() else ended_at end where what = ${what}`;
    return done;
  });
}

type Partition = string;

/** The default partition, which contains the messages whose day has no partition. */
export const strayMessages: Partition = 'messages_default';

export const hasStrays = (sql: Sql) => sql.some`select from ${fragment(strayMessages)} limit 1`;

export interface OldestRow {
  readonly chat_id: number;
  readonly user_id: number;
  /** The first bytes of the oldest record, including the record's header. Null if no message is left. */
  readonly head: Buffer | null;
}

const head = fragment('substring(record from 1 for 96)');

export const loadOldest = (
  sql: Sql,
  partition: Partition,
  chat: number,
  user: number,
  limit: number,
) => sql.rows<OldestRow>`
  select s.chat_id, s.user_id, m.head
  from (select chat_id, user_id from chat_sequences
    where (chat_id, user_id) > (${chat}::bigint, ${user}::bigint)
    order by chat_id, user_id limit ${limit}) s
  left join lateral (
    select ${head} as head from ${fragment(partition)}
    where chat_id = s.chat_id and user_id = s.user_id and record is not null
    order by message_id limit 1) m on true
  order by 1, 2`;

export interface RecordRow {
  readonly message_id: number;
  readonly record: Buffer;
}

export const loadFrom = (
  sql: Sql,
  partition: Partition,
  chat: number,
  user: number,
  after: number,
  limit: number,
) => sql.rows<RecordRow>`
  select message_id, record from ${fragment(partition)}
  where chat_id = ${chat} and user_id = ${user} and message_id > ${after} and record is not null
  order by message_id limit ${limit}`;

/** Deletes messages of a deleted chat, because nobody can read them any more. */
export const deleteMessages = (
  sql: Sql,
  partition: Partition,
  chat: number,
  user: number,
  ids: readonly number[],
) => sql.run`
  delete from ${fragment(partition)}
  where chat_id = ${chat} and user_id = ${user} and message_id = any(${ids})`;

export interface ChatRow {
  readonly chat_id: number;
  readonly user_id: number;
}

export const loadShared = (
  sql: Sql,
  partition: Partition,
  after: { readonly chat: number; readonly message: number },
  limit: number,
) => sql.rows<ChatRow & RecordRow>`
  select chat_id, user_id, message_id, record from ${fragment(partition)}
  where chat_id < 0 and (chat_id, user_id, message_id) > (${after.chat}::bigint, 0, ${after.message}::bigint)
    and record is not null
  order by chat_id, user_id, message_id limit ${limit}`;

export const loadPins = (
  sql: Sql,
  after: { readonly chat: number; readonly user: number },
  limit: number,
) => sql.rows<ChatRow & { readonly record: Buffer }>`
  select chat_id, user_id, record from chat_pins
  where (chat_id, user_id) > (${after.chat}::bigint, ${after.user}::bigint) and record is not null
  order by chat_id, user_id limit ${limit}`;

export const loadThese = (
  sql: Sql,
  partition: Partition,
  keys: ReadonlyArray<readonly [chat: number, user: number, message: number]>,
) => sql.rows<ChatRow & RecordRow>`
  select chat_id, user_id, message_id, m.record
  from unnest(${keys.map(([chat]) => chat)}::bigint[], ${keys.map(([, user]) => user)}::bigint[],
    ${keys.map(([, , message]) => message)}::bigint[]) as k (chat_id, user_id, message_id)
  join ${fragment(partition)} m using (chat_id, user_id, message_id)
  where m.record is not null`;

export const estimateRows = async (sql: Sql, partition: Partition) =>
  (await sql.firstValue<number>`
    select greatest(reltuples, 0)::bigint as rows from pg_class where oid = ${partition}::regclass`) ?? 0;

/**
 * Returns those of the given files that are in use as the picture of a bot or person, as the current photo of a chat,
 * in a sticker set, or in a scheduled post.
 */
export async function picturesAmong(sql: Sql, keys: readonly string[]): Promise<Set<string>> {
  const pictures = await sql.column<string>`
    select k.key from unnest(${keys}::text[]) k (key),
      jsonb_build_array(jsonb_build_object('key', k.key)) sizes
    where exists (select from bots b where b.pictures @> jsonb_build_object('avatar', sizes)
      or b.pictures @> jsonb_build_object('start_picture', sizes))
      or exists (select from users u where u.avatar @> sizes)
      or exists (select from chats c where c.photo @> sizes)
      or exists (select from sticker_sets s where s.stickers @> sizes)
      or exists (select from scheduled_posts p where p.files @> array[k.key])`;
  return new Set(pictures);
}
