/** SQL statements for scheduled posts in channels (decision 0087). */
import { fail } from '../../errors.js';
import { hasRight } from '../../rules/rights.js';
import { lockPerson } from '../accounts/users.js';
import { noteUnused } from '../bots/pictures.js';
import { postgresLimits as limits } from '../limits.js';
import { type Database, fragment, type Sql, seconds } from '../sql.js';
import { loadStanding, outside } from './events.js';
import { lockChat } from './members.js';

export interface ScheduledPostRow {
  readonly id: number;
  readonly chat_id: number;
  readonly user_id: number;
  readonly content: Buffer;
  /** The Unix time in seconds at which the post is to be published. */
  readonly publish_at: number;
  /** The name of the error that prevented the publication. Null if the post is still scheduled. */
  readonly failure: string | null;
}

export interface ScheduledContent {
  readonly content: Buffer;
  /**
   * The keys of the uploaded files. The files are removed together with the scheduled post, unless it was published.
   */
  readonly files: readonly string[];
}

export interface ClaimedPost extends ScheduledPostRow {
  readonly seed: string;
  /** How long ago the first attempt to publish the post began, in ms. */
  readonly tried_ms: number;
}

const columns = fragment(`id, chat_id, user_id, content, ${seconds('publish_at')} as publish_at, failure`);
/**
 * Whether no attempt to publish the post is running. If a process dies during an attempt, the attempt counts as running
 * until the next attempt has ended.
 */
const isIdle = fragment('tried_at is null');

/** Whether a post's author may still post in the channel. */
const mayPost = fragment(`exists (
  select from chat_members m where m.chat_id = p.chat_id and m.member_id = p.user_id and (m.status = 'creator'
    or m.status = 'administrator' and m.rights @> '{"can_post_messages": true}'))`);

/**
 * Fails with `too_many_scheduled_posts` if a post of this size would exceed the limits of the channel or of the author.
 * The limits of the channel ignore posts of people who may no longer post there, because only these people can see and
 * delete the posts.
 */
async function checkRoom(sql: Sql, chat: number, author: number, bytes: number, except = 0): Promise<void> {
  const totals = await sql.one<{ in_chat: number; chat_bytes: number; own: number; own_bytes: number }>`
    select count(*) filter (where chat_id = ${chat} and ${mayPost})::int as in_chat,
      coalesce(sum(octet_length(content)) filter (where chat_id = ${chat} and ${mayPost}), 0)::int as chat_bytes,
      count(*) filter (where user_id = ${author})::int as own,
      coalesce(sum(octet_length(content)) filter (where user_id = ${author}), 0)::int as own_bytes
    from scheduled_posts p where (chat_id = ${chat} or user_id = ${author}) and id <> ${except}`;
  if (
    totals.in_chat >= limits.scheduled_posts_per_chat_max ||
    totals.chat_bytes + bytes > limits.scheduled_posts_bytes_per_chat_max ||
    totals.own >= limits.scheduled_posts_per_person_max ||
    totals.own_bytes + bytes > limits.scheduled_posts_bytes_per_person_max
  )
    fail('too_many_scheduled_posts');
}

/**
 * Schedules a post and returns its id. `at` is Unix time in seconds. Errors: `chat_not_found`, `not_a_channel`,
 * `posting_not_allowed`, `too_many_scheduled_posts`.
 */
export const addScheduled = (
  db: Database,
  chat: number,
  author: number,
  { content, files }: ScheduledContent,
  at: number,
): Promise<number> =>
  db.transaction(async (sql) => {
    const { type } = await lockChat(sql, chat);
    if (type !== 'channel') fail('not_a_channel');
    if (!hasRight((await loadStanding(sql, chat, author)) ?? outside, 'can_post_messages'))
      fail('posting_not_allowed');
    await lockPerson(sql, author);
    await checkRoom(sql, chat, author, content.length);
    return sql.value<number>`
      insert into scheduled_posts (chat_id, user_id, content, files, publish_at, next_at)
      values (${chat}, ${author}, ${content}, ${files}::text[], to_timestamp(${at}::bigint),
        to_timestamp(${at}::bigint)) returning id`;
  });

export interface ScheduledChange {
  readonly content: Buffer | null;
  /** The new time of publication, as Unix time in seconds. Null keeps the present time. */
  readonly at: number | null;
}

/**
 * Locks a scheduled post if it belongs to this author. Errors: `scheduled_post_not_found`, `scheduled_post_publishing`.
 */
async function lockScheduled(sql: Sql, chat: number, author: number, id: number): Promise<void> {
  const found = await sql.first<{ idle: boolean }>`
    select ${isIdle} as idle from scheduled_posts
    where id = ${id} and chat_id = ${chat} and user_id = ${author} for update`;
  if (found === null) fail('scheduled_post_not_found');
  else if (!found.idle) fail('scheduled_post_publishing');
}

/**
 * Changes the content or the time of a post. A post whose publication failed is scheduled again. Errors:
 * `chat_not_found`, `scheduled_post_not_found`, `scheduled_post_publishing`, `too_many_scheduled_posts`.
 */
export const changeScheduled = (
  db: Database,
  chat: number,
  author: number,
  id: number,
  { content, at }: ScheduledChange,
): Promise<boolean> =>
  db.transaction(async (sql) => {
    // Looks for the author's own post first, so that the error does not reveal whether a private channel exists.
    await lockScheduled(sql, chat, author, id);
    await lockChat(sql, chat);
    await lockPerson(sql, author);
    if (content) await checkRoom(sql, chat, author, content.length, id);
    await sql.run`
      update scheduled_posts set content = coalesce(${content}::bytea, content), failure = null,
        publish_at = coalesce(to_timestamp(${at}::bigint), publish_at),
        next_at = coalesce(to_timestamp(${at}::bigint), publish_at)
      where id = ${id}`;
    return true;
  });

/**
 * Deletes a scheduled post, whose files then become unused. Errors: `scheduled_post_not_found`,
 * `scheduled_post_publishing`.
 */
export const deleteScheduled = (db: Database, chat: number, author: number, id: number): Promise<boolean> =>
  db.transaction(async (sql) => {
    await lockScheduled(sql, chat, author, id);
    const files = await sql.column<string>`
      with gone as (delete from scheduled_posts where id = ${id} returning files) select unnest(files) from gone`;
    await noteUnused(sql, files);
    return true;
  });

/**
 * Deletes all scheduled posts of a person. Keeps the files of a post that is being published, because the message may
 * exist.
 */
export async function deleteScheduledBy(sql: Sql, author: number): Promise<void> {
  const files = await sql.column<string>`
    with gone as (delete from scheduled_posts where user_id = ${author} returning files, tried_at)
    select unnest(files) from gone where tried_at is null`;
  await noteUnused(sql, files);
}

export const loadScheduled = (sql: Sql, chat: number, author: number, after: number, limit: number) =>
  sql.rows<ScheduledPostRow>`
    select ${columns} from scheduled_posts where chat_id = ${chat} and user_id = ${author} and id > ${after}
    order by id limit ${limit}`;

export const loadScheduledPost = (sql: Sql, author: number, id: number) => sql.first<ScheduledPostRow>`
  select ${columns} from scheduled_posts where id = ${id} and user_id = ${author}`;

/** Loads the scheduled posts of a person in all channels. */
export const loadScheduledBy = (sql: Sql, author: number, after: number, limit: number) =>
  sql.rows<ScheduledPostRow>`
    select ${columns} from scheduled_posts where user_id = ${author} and id > ${after} order by id limit ${limit}`;

const claim = fragment(`tried_at = coalesce(tried_at, now())`);
const claimed = fragment(
  `${columns}, seed::text as seed, floor(extract(epoch from now() - tried_at) * 1000)::bigint as tried_ms`,
);

/** Returns the time in ms until the next post is due or the next claim ends. Null if nothing is scheduled. */
export const untilScheduledDue = (sql: Sql) => sql.value<number | null>`
  select ceil(extract(epoch from min(next_at) - now()) * 1000)::bigint from scheduled_posts`;

/** Claims due posts for `forMs`, except those that another process has claimed. */
export const claimDue = (sql: Sql, limit: number, forMs: number) => sql.rows<ClaimedPost>`
  update scheduled_posts set ${claim}, next_at = now() + ${forMs}::bigint * interval '1 millisecond'
  where id in (
    select id from scheduled_posts where next_at <= now() order by next_at limit ${limit} for update skip locked)
  returning ${claimed}`;

/**
 * Claims one post for `forMs`, even if it is not due. Errors: `scheduled_post_not_found`, `scheduled_post_publishing`.
 */
export async function claimOne(db: Database, chat: number, author: number, id: number, forMs: number) {
  // Encodes the content as text. `db` may store the result of the transaction as JSON, which cannot contain bytes.
  const post = await db.transaction(async (sql) => {
    await lockScheduled(sql, chat, author, id);
    const row = await sql.one<ClaimedPost>`
      update scheduled_posts set ${claim}, failure = null,
        next_at = now() + ${forMs}::bigint * interval '1 millisecond'
      where id = ${id} returning ${claimed}`;
    return { ...row, content: row.content.toString('base64') };
  });
  return { ...post, content: Buffer.from(post.content, 'base64') };
}

export const deletePublished = (sql: Sql, id: number) => sql.run`
  delete from scheduled_posts where id = ${id}`;

/**
 * Records why a post was not published. The post is not tried again until its author changes it. If it is unknown
 * whether the post was published, empties its list of files. The files then stay when the post is deleted, because a
 * message may use them.
 */
export const noteFailure = (sql: Sql, id: number, failure: string) => sql.run`
  update scheduled_posts set failure = ${failure}, tried_at = null, next_at = 'infinity',
    files = case when ${failure}::text = 'publication_unknown' then '{}' else files end
  where id = ${id} and tried_at is not null`;

/** Schedules a post for its original time again, after an attempt to publish it early was refused. */
export const putBack = (sql: Sql, id: number) => sql.run`
  update scheduled_posts set tried_at = null, next_at = publish_at where id = ${id} and tried_at is not null`;

/** Deletes failed posts whose planned time was more than `ageMs` ago. Returns how many files became unused. */
export const deleteOldFailures = (db: Database, ageMs: number): Promise<number> =>
  db.transaction(async (sql) => {
    const files = await sql.column<string>`
      with gone as (
        delete from scheduled_posts where failure is not null
          and publish_at < now() - ${ageMs}::bigint * interval '1 millisecond' returning files)
      select unnest(files) from gone`;
    await noteUnused(sql, files);
    return files.length;
  });

/**
 * Deletes the scheduled posts of deleted accounts. Such posts exist if an older version of Petrel, which does not know
 * scheduled posts, deleted the account. Keeps the files of a post that is being published, because the message may
 * exist. Returns how many files became unused.
 */
export const deleteOfDeleted = (db: Database): Promise<number> =>
  db.transaction(async (sql) => {
    const files = await sql.column<string>`
      with gone as (
        delete from scheduled_posts p using users u where u.id = p.user_id and u.deleted_at is not null
        returning p.files, p.tried_at)
      select unnest(files) from gone where tried_at is null`;
    await noteUnused(sql, files);
    return files.length;
  });
