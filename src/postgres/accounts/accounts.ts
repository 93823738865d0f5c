/** Ends a person's account, and then removes the account's remaining data in steps. */
import { noteAudit } from '../bots/audit.js';
import { notifyPerson } from '../bots/notices.js';
import { closePersonChats } from '../chats/people.js';
import { deleteScheduledBy } from '../chats/scheduled_posts.js';
import { type Database, fragment, noteStale, type Sql } from '../sql.js';
import { endBots } from './removal.js';
import { releaseAvatar } from './users.js';

export interface Ended {
  /** The ids of the bots that the person owned. */
  readonly bots: readonly number[];
  /** The ids of the bots with which the person had a direct chat. */
  readonly direct: readonly number[];
  /** The ids of the person's chats with other people. */
  readonly people: readonly number[];
  readonly identities: readonly number[];
}

const onlyShownToThem = [
  ...['notices', 'management_talks', 'bot_writers', 'bot_menu_buttons', 'read_marks'],
  ...['chat_invitations', 'join_requests', 'stranger_adds', 'bot_creations'],
  ...['chat_mutes', 'chat_places', 'push_subscriptions', 'push_due', 'person_blocks'],
];

async function declineOffers(sql: Sql, user: number): Promise<void> {
  const offers = await sql.rows<{ bot_id: number; from_id: number; username: string }>`
    delete from bot_transfers t using bots b where b.id = t.bot_id and t.to_id = ${user}
    returning t.bot_id, t.from_id, b.username`;
  for (const { bot_id: bot, from_id, username } of offers) {
    await noteAudit(sql, bot, { type: 'service' }, 'transfer_declined');
    await notifyPerson(sql, from_id, { kind: 'transfer_declined', bot, username, to: '' });
  }
}

/**
 * Ends an account in one transaction. Removes the person's name, tokens, identities and bots, and all data that only
 * this person can see. Closes direct chats for both sides, and schedules the removal of the remaining data. Nobody else
 * can take the username for `holdMs`. Returns null if the person does not exist or the account has already ended.
 */
export function endAccount(db: Database, user: number, holdMs: number): Promise<Ended | null> {
  return db.transaction(async (sql) => {
    const exists = await sql.some`
      select 1 from users where id = ${user} and deleted_at is null for no key update`;
    if (!exists) return null;
    await sql.run`
      update names set free_at = now() + ${holdMs}::bigint * interval '1 millisecond' where owner = ${user}
      and name = (select lower(username) from users where id = ${user})`;
    await releaseAvatar(sql, user);
    await sql.run`
      update users set deleted_at = now(), username = null, first_name = '', last_name = null,
        language_code = null, suspended_at = null, version = nextval('control_versions'),
        chats_version = nextval('control_versions')
      where id = ${user}`;
    for (const table of [...onlyShownToThem, 'user_tokens', 'leaks'])
      await sql.run`delete from ${fragment(table)} where user_id = ${user}`;
    await deleteScheduledBy(sql, user);
    await declineOffers(sql, user);
    const bots = await sql.column<number>`
      select id from bots where owner_id = ${user} order by id for no key update`;
    await endBots(sql, bots, user, holdMs);
    const identities = await sql.column<number>`
      update user_identities set user_id = null, version = nextval('control_versions')
      where user_id = ${user} returning id`;
    const direct = await sql.column<number>`
      update direct_chats set blocked = true, version = nextval('control_versions')
      where user_id = ${user} returning bot_id`;
    const people = await closePersonChats(sql, user);
    await sql.run`delete from person_blocks where blocked_id = ${user}`;
    await sql.run`insert into account_removals (user_id) values (${user})`;
    await noteStale(sql, [
      ['user_gone', user],
      ...identities.map((id) => ['identity', id] as const),
      ...direct.map((bot) => ['chat', bot, user] as const),
      ...people.map((chat) => ['chat', chat] as const),
    ]);
    return { bots, direct, people, identities };
  });
}

export interface RemovalStep<P> {
  readonly place: P;
  readonly over: boolean;
  /** The delay in ms before the next removal step. 0 runs the next step immediately. */
  readonly restMs: number;
}

/**
 * Runs one step of removing the remaining data of an account: that of `user`, or the account that has waited longest if
 * `user` is null. `work` gets the position where the previous step stopped, or null for the first step. Only one
 * process at a time works on an account. If that process dies, the stored position stays the same. A step must end
 * within limits.retention_piece_ms. Returns null if there was no account to remove.
 */
export function takeRemoval<P>(
  db: Database,
  user: number | null,
  work: (sql: Sql, user: number, place: P | null) => Promise<RemovalStep<P>>,
): Promise<RemovalStep<P> | null> {
  return db.transaction(async (sql) => {
    const [row] = await sql.rows<{ user_id: number; place: P | null }>`
      select user_id, place from account_removals
      where next_at <= now() and (${user}::bigint is null or user_id = ${user})
      order by next_at limit 1 for update skip locked`;
    if (row === undefined) return null;
    const step = await work(sql, row.user_id, row.place);
    if (step.over) await sql.run`delete from account_removals where user_id = ${row.user_id}`;
    else
      await sql.run`
        update account_removals set place = ${JSON.stringify(step.place)},
          next_at = clock_timestamp() + ${step.restMs}::bigint * interval '1 millisecond'
        where user_id = ${row.user_id}`;
    return step;
  });
}

/** Postpones the removal of an account whose next step cannot run now. Meanwhile, other accounts are removed. */
export const putOff = (sql: Sql, user: number, ms: number) => sql.run`
  update account_removals set next_at = clock_timestamp() + ${ms}::bigint * interval '1 millisecond'
  where user_id = ${user}`;

export const loadReactedPosts = (
  sql: Sql,
  user: number,
  partitions: readonly number[],
  after: { readonly partition: number; readonly number: number },
  limit: number,
) => sql.rows<{ readonly partition: number; readonly number: number }>`
  select distinct partition, number from post_reactions
  where user_id = ${user} and record is not null
    and (partition, number) > (${after.partition}::bigint, ${after.number}::bigint)
    and partition = any(${partitions}::bigint[])
  order by partition, number limit ${limit}`;

/**
 * Loads the external id of a person. If the account has ended, the id is still stored until the removal is over.
 * Returns '' if the person does not exist.
 */
export const loadExternalId = async (sql: Sql, user: number) =>
  (await sql.firstValue<string>`select external_id from users where id = ${user}`) ?? '';

/** Loads a person's chats with ids greater than `after`. Includes chats that the person has left. */
export const loadChatsOfMember = (sql: Sql, user: number, after: number, limit: number) =>
  sql.column<number>`
    select chat_id from chat_members where member_id = ${user} and chat_id > ${after}
    order by chat_id limit ${limit}`;

export const loadDirectBots = (sql: Sql, user: number) => sql.column<number>`
  select bot_id from direct_chats where user_id = ${user} order by bot_id limit 1`;

export async function removeDirectChat(sql: Sql, bot: number, user: number): Promise<void> {
  await sql.run`delete from member_events where chat_id = ${bot} and user_id = ${user}`;
  await sql.run`delete from direct_chats where bot_id = ${bot} and user_id = ${user}`;
}

/** Removes the last data of a person. Only the id remains. */
export async function forgetPerson(sql: Sql, user: number): Promise<void> {
  await sql.run`delete from chat_members where member_id = ${user}`;
  // Deletes the person's rows again, because calls that were still running when the account ended may have added rows.
  for (const table of [...onlyShownToThem, 'user_tokens'])
    await sql.run`delete from ${fragment(table)} where user_id = ${user}`;
  await sql.run`update users set external_id = gen_random_uuid() where id = ${user}`;
}
