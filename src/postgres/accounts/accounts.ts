/** Statements that end an account, and those that remove its remaining data step by step. */
import { noteAudit } from '../bots/audit.js';
import { tellPerson } from '../bots/notices.js';
import { type Database, noteStale, type Sql } from '../sql.js';
import { endBots } from './removal.js';

/** Bots and identities that ended together with an account. */
export interface Ended {
  /** bots that the person owned, by id */
  readonly bots: readonly number[];
  /** bots that had a direct chat with the person, by id */
  readonly direct: readonly number[];
  /** ids of the identity rows that were the person's */
  readonly identities: readonly number[];
}

/** Tables of data that is shown only to the person. */
const onlyShownToThem = [
  ...['notices', 'management_talks', 'bot_writers', 'read_marks'],
  ...['chat_invitations', 'stranger_adds', 'bot_creations'],
  ...['chat_mutes', 'push_subscriptions', 'push_due'],
];

const ids = async (sql: Sql, text: string, values: readonly unknown[]): Promise<number[]> =>
  (await sql.query<{ id: number }>(text, values)).map(({ id }) => id);

/** Declines all bot transfers that were offered to the person, as they could have done. */
async function declineOffers(sql: Sql, user: number): Promise<void> {
  const offers = await sql.query<{ bot_id: number; from_id: number; username: string }>(
    `delete from bot_transfers t using bots b where b.id = t.bot_id and t.to_id = $1
     returning t.bot_id, t.from_id, b.username`,
    [user],
  );
  for (const { bot_id: bot, from_id, username } of offers) {
    await noteAudit(sql, bot, { type: 'service' }, 'transfer_declined');
    await tellPerson(sql, from_id, { kind: 'transfer_declined', bot, username, to: '' });
  }
}

/**
 * Ends an account in one transaction: removes the name, tokens, identities, bots and all data shown only to this
 * person, closes direct chats to both sides, and records that the remaining data must be removed. Nobody can take the
 * username for `holdMs`. Returns null when the person does not exist or the account has already ended.
 */
export function endAccount(db: Database, user: number, holdMs: number): Promise<Ended | null> {
  return db.transaction(async (sql) => {
    const found = await sql.query(
      'select 1 from users where id = $1 and deleted_at is null for no key update',
      [user],
    );
    if (found.length === 0) return null;
    await sql.query(
      `update names set free_at = now() + $2::bigint * interval '1 millisecond' where owner = $1
          and name = (select lower(username) from users where id = $1)`,
      [user, holdMs],
    );
    await sql.query(
      `update users set deleted_at = now(), username = null, first_name = '', last_name = null, language_code = null,
              suspended_at = null, version = nextval('control_versions'), chats_version = nextval('control_versions')
        where id = $1`,
      [user],
    );
    for (const table of [...onlyShownToThem, 'user_tokens', 'leaks'])
      await sql.query(`delete from ${table} where user_id = $1`, [user]);
    await declineOffers(sql, user);
    const bots = await ids(sql, 'select id from bots where owner_id = $1 order by id for no key update', [
      user,
    ]);
    await endBots(sql, bots, user, holdMs);
    const identities = await ids(
      sql,
      `update user_identities set user_id = null, version = nextval('control_versions') where user_id = $1 returning id`,
      [user],
    );
    const direct = await ids(
      sql,
      `update direct_chats set blocked = true, version = nextval('control_versions')
        where user_id = $1 returning bot_id as id`,
      [user],
    );
    await sql.query('insert into account_removals (user_id) values ($1)', [user]);
    await noteStale(sql, [
      ['user_gone', user],
      ...identities.map((id) => ['identity', id] as const),
      ...direct.map((bot) => ['chat', bot, user] as const),
    ]);
    return { bots, direct, identities };
  });
}

/** Result of one step in the removal of an account's remaining data. */
export interface RemovalStep<P> {
  readonly place: P;
  readonly over: boolean;
  /** delay until the next step, in ms; 0 for at once */
  readonly restMs: number;
}

/**
 * Runs `work` on the remaining data of one account, of `user` or of the one that waits longest, from where its last
 * step stopped (null for the first step). One process at a time works on an account; a process that dies leaves that
 * position unchanged. A step must end within limits.retention_piece_ms. Returns null when there was no account to
 * remove.
 */
export function takeRemoval<P>(
  db: Database,
  user: number | null,
  work: (sql: Sql, user: number, place: P | null) => Promise<RemovalStep<P>>,
): Promise<RemovalStep<P> | null> {
  return db.transaction(async (sql) => {
    const [row] = await sql.query<{ user_id: number; place: P | null }>(
      `select user_id, place from account_removals
        where next_at <= now() and ($1::bigint is null or user_id = $1)
        order by next_at limit 1 for update skip locked`,
      [user],
    );
    if (row === undefined) return null;
    const step = await work(sql, row.user_id, row.place);
    if (step.over) await sql.query('delete from account_removals where user_id = $1', [row.user_id]);
    else
      await sql.query(
        `update account_removals set place = $2, next_at = clock_timestamp() + $3::bigint * interval '1 millisecond'
          where user_id = $1`,
        [row.user_id, JSON.stringify(step.place), step.restMs],
      );
    return step;
  });
}

/** Postpones the removal of an account that cannot proceed, so that other accounts go first. */
export async function putOff(sql: Sql, user: number, ms: number): Promise<void> {
  await sql.query(
    `update account_removals set next_at = clock_timestamp() + $2::bigint * interval '1 millisecond' where user_id = $1`,
    [user, ms],
  );
}

/** Posts of these partitions that have reactions of a person in Postgres, after the given post. */
export function loadReactedPosts(
  sql: Sql,
  user: number,
  partitions: readonly number[],
  after: { readonly partition: number; readonly number: number },
  limit: number,
): Promise<Array<{ readonly partition: number; readonly number: number }>> {
  return sql.query(
    `select distinct partition, number from post_reactions
      where user_id = $1 and record is not null and (partition, number) > ($2::bigint, $3::bigint)
        and partition = any($5::bigint[])
      order by partition, number limit $4`,
    [user, after.partition, after.number, limit, partitions],
  );
}

/** The external id of a deleted person, while the removal still needs it. */
export async function loadExternalId(sql: Sql, user: number): Promise<string> {
  const [row] = await sql.query<{ external_id: string }>('select external_id from users where id = $1', [
    user,
  ]);
  return row?.external_id ?? '';
}

/** Groups and channels that a person is or was in, with ids greater than `after`. */
export function loadChatsOfMember(sql: Sql, user: number, after: number, limit: number): Promise<number[]> {
  return ids(
    sql,
    'select chat_id as id from chat_members where member_id = $1 and chat_id > $2 order by chat_id limit $3',
    [user, after, limit],
  );
}

/** The first bot that still has a direct chat with a person. */
export const loadDirectBots = (sql: Sql, user: number): Promise<number[]> =>
  ids(sql, 'select bot_id as id from direct_chats where user_id = $1 order by bot_id limit 1', [user]);

/** Removes a direct chat that has no messages left. */
export async function removeDirectChat(sql: Sql, bot: number, user: number): Promise<void> {
  await sql.query('delete from member_events where chat_id = $1 and user_id = $2', [bot, user]);
  await sql.query('delete from direct_chats where bot_id = $1 and user_id = $2', [bot, user]);
}

/** Removes the last data of a person; only the id remains. */
export async function forgetPerson(sql: Sql, user: number): Promise<void> {
  await sql.query('delete from chat_members where member_id = $1', [user]);
  // Calls that were running when the account ended may have added rows.
  for (const table of [...onlyShownToThem, 'user_tokens'])
    await sql.query(`delete from ${table} where user_id = $1`, [user]);
  await sql.query('update users set external_id = gen_random_uuid() where id = $1', [user]);
}
