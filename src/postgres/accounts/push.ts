/** Stores push subscriptions (one per browser) and pending push notifications. */
import { bigintArray } from '../arrays.js';
import { type Database, type Sql, seconds } from '../sql.js';
import { lockPerson } from './users.js';

export interface SubscriptionKeys {
  readonly endpoint: string;
  /** The browser's public key, an uncompressed P-256 point. */
  readonly p256dh: Buffer;
  readonly auth: Buffer;
}

/**
 * Registers a person's browser. If the browser was registered for somebody else, it now belongs to this person. If the
 * person then has more than `max` browsers, removes the oldest one. Error: `unauthorized`.
 */
export function putSubscription(
  db: Database,
  user: number,
  { endpoint, p256dh, auth }: SubscriptionKeys,
  lookups: readonly Buffer[],
  max: number,
): Promise<void> {
  return db.transaction(async (sql) => {
    // Makes concurrent registrations by one person wait for each other.
    await lockPerson(sql, user);
    await sql.run`
      insert into push_subscriptions (user_id, endpoint, p256dh, auth, token_id)
      values (${user}, ${endpoint}, ${p256dh}, ${auth},
        (select id from user_tokens where user_id = ${user} and hmac = any(${lookups}::bytea[]) limit 1))
      on conflict (endpoint) do update
      set user_id = excluded.user_id, p256dh = excluded.p256dh, auth = excluded.auth,
        token_id = excluded.token_id, failures = 0, created_at = now()`;
    await sql.run`
      delete from push_subscriptions where id in
        (select id from push_subscriptions where user_id = ${user}
          order by created_at desc, id desc offset ${max})`;
  });
}

export const removeSubscription = (sql: Sql, user: number, endpoint: string) => sql.run`
  delete from push_subscriptions where user_id = ${user} and endpoint = ${endpoint}`;

export interface SubscriptionFact {
  readonly endpoint: string;
  /** The Unix time in seconds at which the browser was registered. */
  readonly created_at: number;
}

export const loadSubscriptions = (sql: Sql, user: number) => sql.rows<SubscriptionFact>`
  select endpoint, ${seconds('created_at')} as created_at
  from push_subscriptions where user_id = ${user} order by created_at, id`;

export const anySubscription = (sql: Sql) => sql.some`select 1 from push_subscriptions limit 1`;

export interface NotedMessage {
  readonly chat: number;
  /** The person in a direct chat, or 0 for all other chats. */
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
 * Schedules push notifications about messages for members with a registered browser. Skips the sender and members who
 * muted the chat. Schedules at most `recipientsMax` notifications per message and `dueMax` in total. If a person
 * already has a scheduled notification about a chat, that notification keeps its time but shows the newest message. A
 * person gets at most one notification per chat every `gapMs`. Scheduling the same message again has no effect.
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
            where m.user_id = 0 and c.member_id <> m.sender and c.status in ('creator', 'administrator', 'member', 'restricted')
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
      ...(['chat', 'user', 'message', 'sender'] as const).map((name) =>
        bigintArray(messages.map((message) => message[name])),
      ),
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
 * Takes due notifications, in the order of their due times. Only one process gets each notification. If this process
 * dies before it sends, the notification is lost.
 */
export const takeDue = (sql: Sql, limit: number) => sql.rows<DueRow>`
  with due as (
    select user_id, chat_id from push_due where due_at <= now() order by due_at limit ${limit}
    for update skip locked
  )
  update push_due p set due_at = null from due
   where p.user_id = due.user_id and p.chat_id = due.chat_id
  returning p.user_id, p.chat_id, p.message_id`;

/** Returns the time in ms until the next notification is due, or null if none is scheduled. */
export const untilDue = async (sql: Sql) =>
  (await sql.firstValue<number | null>`
    select (extract(epoch from min(due_at) - clock_timestamp()) * 1000)::float8 as ms
    from push_due where due_at is not null`) ?? null;

export const recordNotified = (sql: Sql, notified: readonly DueRow[]) => sql.run`
  update push_due p set pushed_at = now()
  from unnest(${bigintArray(notified.map(({ user_id }) => user_id))}::bigint[],
    ${bigintArray(notified.map(({ chat_id }) => chat_id))}::bigint[]) as t (user_id, chat_id)
  where p.user_id = t.user_id and p.chat_id = t.chat_id`;

export interface Addressee extends DueRow, SubscriptionKeys {
  readonly id: number;
  readonly language_code: string | null;
}

/**
 * Returns one row for each browser to notify. Leaves out people who have since read the message, muted or left the
 * chat, or been suspended.
 */
export const loadAddressees = (sql: Sql, due: readonly DueRow[]) => sql.rows<Addressee>`
  select p.user_id, p.chat_id, p.message_id, u.language_code, s.id, s.endpoint, s.p256dh, s.auth
   from unnest(${bigintArray(due.map(({ user_id }) => user_id))}::bigint[],
     ${bigintArray(due.map(({ chat_id }) => chat_id))}::bigint[],
     ${bigintArray(due.map(({ message_id }) => message_id))}::bigint[]) as p (user_id, chat_id, message_id)
   join users u on u.id = p.user_id and u.deleted_at is null and u.suspended_at is null
   join push_subscriptions s on s.user_id = p.user_id
  where not exists (select from read_marks r where r.user_id = p.user_id and r.chat_id = p.chat_id
                       and r.message_id >= p.message_id)
    and not exists (select from chat_mutes x where x.user_id = p.user_id and x.chat_id = p.chat_id
                       and (x.until is null or x.until > now()))
    and (p.chat_id > 0 or exists (
      select from chat_members c where c.chat_id = p.chat_id and c.member_id = p.user_id
        and c.status in ('creator', 'administrator', 'member', 'restricted')))`;

/** Removes a browser that its push service no longer knows, even if the browser has registered again meanwhile. */
export const dropSubscription = (sql: Sql, id: number) => sql.run`
  delete from push_subscriptions where id = ${id}`;

/**
 * Counts a browser's consecutive failures, and removes the browser after `max` failures in a row. A success (`failed`
 * is false) resets the count.
 */
export async function countFailure(sql: Sql, id: number, failed: boolean, max: number): Promise<void> {
  if (!failed) {
    await sql.run`update push_subscriptions set failures = 0 where id = ${id} and failures > 0`;
    return;
  }
  await sql.run`
    with counted as (
      update push_subscriptions set failures = failures + 1 where id = ${id} and failures + 1 < ${max}
      returning id
    )
    delete from push_subscriptions where id = ${id} and failures + 1 >= ${max}`;
}

export const purgeDue = (sql: Sql, ageMs: number) => sql.run`
  delete from push_due where noted_at < now() - ${ageMs}::bigint * interval '1 millisecond'`;
