/** Statements on push subscriptions, one per browser, and on pending push notifications. */
import { bigintArray } from '../arrays.js';
import type { Database, Sql } from '../sql.js';
import { lockPerson } from './users.js';

export interface SubscriptionKeys {
  readonly endpoint: string;
  /** public key of the browser: an uncompressed point of P-256 */
  readonly p256dh: Buffer;
  readonly auth: Buffer;
}

/**
 * Registers a person's browser; one registered for somebody else becomes theirs. Above `max` the oldest is removed.
 * Error: `unauthorized`.
 */
export function putSubscription(
  db: Database,
  user: number,
  { endpoint, p256dh, auth }: SubscriptionKeys,
  lookups: readonly Buffer[],
  max: number,
): Promise<void> {
  return db.transaction(async (sql) => {
    // Concurrent registrations of one person wait here.
    await lockPerson(sql, user);
    await sql.query(
      `insert into push_subscriptions (user_id, endpoint, p256dh, auth, token_id)
       values ($1, $2, $3, $4, (select id from user_tokens where user_id = $1 and hmac = any($5::bytea[]) limit 1))
       on conflict (endpoint) do update set user_id = excluded.user_id, p256dh = excluded.p256dh, auth = excluded.auth,
         token_id = excluded.token_id, failures = 0, created_at = now()`,
      [user, endpoint, p256dh, auth, lookups],
    );
    await sql.query(
      `delete from push_subscriptions where id in
         (select id from push_subscriptions where user_id = $1 order by created_at desc, id desc offset $2)`,
      [user, max],
    );
  });
}

export async function removeSubscription(sql: Sql, user: number, endpoint: string): Promise<void> {
  await sql.query('delete from push_subscriptions where user_id = $1 and endpoint = $2', [user, endpoint]);
}

export interface SubscriptionFact {
  readonly endpoint: string;
  /** when the browser was registered, Unix time in seconds */
  readonly created_at: number;
}

/** Browsers of a person, the oldest first; a person has at most a few. */
export function loadSubscriptions(sql: Sql, user: number): Promise<SubscriptionFact[]> {
  return sql.query<SubscriptionFact>(
    `select endpoint, extract(epoch from created_at)::bigint as created_at
       from push_subscriptions where user_id = $1 order by created_at, id`,
    [user],
  );
}

/** Whether anybody has a push subscription. */
export async function anySubscription(sql: Sql): Promise<boolean> {
  return (await sql.query('select 1 from push_subscriptions limit 1')).length > 0;
}

/** The newest message of a chat for push notifications. */
export interface NotedMessage {
  readonly chat: number;
  /** the person of a direct chat; 0 for groups and channels */
  readonly user: number;
  readonly message: number;
  readonly sender: number;
}

export interface NoteBounds {
  readonly delayMs: number;
  readonly gapMs: number;
  readonly recipientsMax: number;
  readonly dueMax: number;
}

/**
 * Schedules notifications of messages to the people of their chats who have a browser, except the sender and people
 * who muted the chat: at most `recipientsMax` per message and `dueMax` in all. A person with a scheduled notification
 * of a chat gets it at the same time, but about the newest message. One chat notifies a person at most once in
 * `gapMs`. A message that was scheduled before changes nothing.
 */
export async function noteDue(
  sql: Sql,
  messages: readonly NotedMessage[],
  { delayMs, gapMs, recipientsMax, dueMax }: NoteBounds,
): Promise<void> {
  await sql.query(
    `insert into push_due as d (user_id, chat_id, message_id, due_at)
     select r.user_id, r.chat_id, r.message_id, now() + $5::bigint * interval '1 millisecond'
       from (
         select m.user_id, m.chat_id, m.message_id
           from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) as m (chat_id, user_id, message_id, sender)
          where m.user_id <> 0 and m.user_id <> m.sender
            and exists (select from push_subscriptions s where s.user_id = m.user_id)
         union all
         select k.member_id, k.chat_id, k.message_id from (
           select c.member_id, m.chat_id, m.message_id, row_number() over (partition by m.chat_id) as n
             from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) as m (chat_id, user_id, message_id, sender)
             join chat_members c on c.chat_id = m.chat_id
             join (select distinct user_id from push_subscriptions) s on s.user_id = c.member_id
            where m.user_id = 0 and c.member_id <> m.sender and c.status in ('creator', 'administrator', 'member')
         ) k where k.n <= $7::bigint
       ) r
      where not exists (select from chat_mutes x where x.user_id = r.user_id and x.chat_id = r.chat_id
                           and (x.until is null or x.until > now()))
        and (select count(*) from (select from push_due where due_at is not null limit $8::bigint) w) < $8::bigint
      order by r.user_id, r.chat_id
     on conflict (user_id, chat_id) do update
     set message_id = excluded.message_id, noted_at = now(),
         due_at = coalesce(d.due_at, greatest(excluded.due_at, d.pushed_at + $6::bigint * interval '1 millisecond'))
     where d.message_id < excluded.message_id`,
    [
      bigintArray(messages.map(({ chat }) => chat)),
      bigintArray(messages.map(({ user }) => user)),
      bigintArray(messages.map(({ message }) => message)),
      bigintArray(messages.map(({ sender }) => sender)),
      ...[delayMs, gapMs, recipientsMax, dueMax],
    ],
  );
}

export interface DueRow {
  readonly user_id: number;
  readonly chat_id: number;
  readonly message_id: number;
}

/**
 * Takes notifications that are due, the longest due first, each for one process only. They are lost if that process
 * dies.
 */
export function takeDue(sql: Sql, limit: number): Promise<DueRow[]> {
  return sql.query<DueRow>(
    `with due as (
       select user_id, chat_id from push_due where due_at <= now() order by due_at limit $1 for update skip locked
     )
     update push_due p set due_at = null from due
      where p.user_id = due.user_id and p.chat_id = due.chat_id
     returning p.user_id, p.chat_id, p.message_id`,
    [limit],
  );
}

/** Time until the next notification is due, in ms; null when none is scheduled. */
export async function untilDue(sql: Sql): Promise<number | null> {
  const [row] = await sql.query<{ ms: number | null }>(
    `select (extract(epoch from min(due_at) - clock_timestamp()) * 1000)::float8 as ms
       from push_due where due_at is not null`,
    [],
  );
  return row?.ms ?? null;
}

/** Records that these people are notified now. */
export async function noteTold(sql: Sql, told: readonly DueRow[]): Promise<void> {
  await sql.query(
    `update push_due p set pushed_at = now() from unnest($1::bigint[], $2::bigint[]) as t (user_id, chat_id)
      where p.user_id = t.user_id and p.chat_id = t.chat_id`,
    [bigintArray(told.map(({ user_id }) => user_id)), bigintArray(told.map(({ chat_id }) => chat_id))],
  );
}

export interface Addressee extends DueRow, SubscriptionKeys {
  /** id of the push subscription */
  readonly id: number;
  readonly language_code: string | null;
}

/**
 * One row for each browser to notify. People have none if they meanwhile read the message, muted or left the chat, or
 * were suspended.
 */
export function loadAddressees(sql: Sql, due: readonly DueRow[]): Promise<Addressee[]> {
  return sql.query<Addressee>(
    `select p.user_id, p.chat_id, p.message_id, u.language_code, s.id, s.endpoint, s.p256dh, s.auth
       from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as p (user_id, chat_id, message_id)
       join users u on u.id = p.user_id and u.deleted_at is null and u.suspended_at is null
       join push_subscriptions s on s.user_id = p.user_id
      where not exists (select from read_marks r where r.user_id = p.user_id and r.chat_id = p.chat_id
                           and r.message_id >= p.message_id)
        and not exists (select from chat_mutes x where x.user_id = p.user_id and x.chat_id = p.chat_id
                           and (x.until is null or x.until > now()))
        and (p.chat_id > 0 or exists (select from chat_members c where c.chat_id = p.chat_id and c.member_id = p.user_id
                                         and c.status in ('creator', 'administrator', 'member')))`,
    [
      bigintArray(due.map(({ user_id }) => user_id)),
      bigintArray(due.map(({ chat_id }) => chat_id)),
      bigintArray(due.map(({ message_id }) => message_id)),
    ],
  );
}

/**
 * Removes a browser that its push service no longer knows. A browser registered again meanwhile keeps its row, so it
 * is removed too.
 */
export async function dropSubscription(sql: Sql, id: number): Promise<void> {
  await sql.query('delete from push_subscriptions where id = $1', [id]);
}

/** Counts consecutive failures; at `max` the browser is removed. A success (`failed` false) resets the count. */
export async function countFailure(sql: Sql, id: number, failed: boolean, max: number): Promise<void> {
  if (!failed) {
    await sql.query('update push_subscriptions set failures = 0 where id = $1 and failures > 0', [id]);
    return;
  }
  await sql.query(
    `with counted as (
       update push_subscriptions set failures = failures + 1 where id = $1 and failures + 1 < $2 returning id
     )
     delete from push_subscriptions where id = $1 and failures + 1 >= $2`,
    [id, max],
  );
}

/** Deletes notifications that were scheduled longer ago than `ageMs`, sent or not. */
export async function purgeDue(sql: Sql, ageMs: number): Promise<void> {
  await sql.query(`delete from push_due where noted_at < now() - $1::bigint * interval '1 millisecond'`, [
    ageMs,
  ]);
}
