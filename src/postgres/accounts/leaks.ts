/** Handles tokens that were found in public, and checks whether a token existed before. */
import { postgresLimits as limits } from '../limits.js';
import { type Database, fragment, type Sql } from '../sql.js';

export interface FoundToken {
  readonly at: number;
  readonly id: number;
  readonly hmac: Buffer;
  readonly place: string;
}

/**
 * The result of a report: the leaked tokens that were real, and the ids of the outbox rows for their stale copies in
 * Redis.
 */
export interface Ended {
  /**
   * The positions of the real tokens in the report. These are tokens that were valid until now, and bot tokens that
   * were already blocked.
   */
  readonly hits: readonly number[];
  readonly outbox: readonly number[];
}

/**
 * Spreads the notices of one report over time, because a large report would otherwise delay the management bot for
 * everybody.
 */
const dueAt = fragment(
  `now() + (row_number() over (order by id) - 1) * ${limits.leak_notice_interval_ms} * interval '1 millisecond'`,
);

/**
 * Returns a statement for any number of leaked tokens. The SQL `ended` invalidates the tokens. The statement also
 * stores the leaks, notices to people, audit entries and the stale copies. It does not join its CTEs, because Postgres
 * may choose slow plans for joins of CTEs.
 */
const ending = (kind: 'bot' | 'user', ended: string, notice: string, more: string) =>
  `with ended as (${ended}), noted as (
     insert into leaks (${kind}_id, reported_by, place) select id, $1, place from ended
   ), notified as (
     insert into notices (user_id, notice, next_at)
       select owner, jsonb_build_object(${notice}, 'where', place), ${dueAt} from ended
   ), stale as (
     insert into control_outbox (subject, subject_id) select distinct '${kind}', id from ended returning id
   ), ${more}
   select array(select at from ended) as hits, array(select id from stale) as outbox`;

const endBotTokens = ending(
  'bot',
  `update bots b set blocked_hmac = token_hmac, blocked_at = now(), version = nextval('control_versions')
     from unnest($2::int[], $3::bigint[], $4::text[]) as f(at, id, place) where b.id = f.id
     returning f.at, b.id, b.owner_id as owner, b.username, f.place`,
  "'kind', 'leak_found', 'bot', id, 'username', username",
  `audited as (
     insert into bot_audit (bot_id, actor_type, event, details)
       select id, 'service', 'leak_found', jsonb_build_object('where', place) from ended
   )`,
);

const endUserTokens = ending(
  'user',
  `delete from user_tokens t using unnest($2::int[], $3::bigint[], $4::text[], $5::bytea[]) as f(at, id, place, hmac)
     where t.hmac = f.hmac and t.user_id = f.id
     returning f.at, t.user_id as id, t.user_id as owner, t.name, f.place`,
  "'kind', 'user_token_leaked', 'name', name",
  "changed as (update users set version = nextval('control_versions') where id in (select id from ended))",
);

const atsOf = (found: readonly FoundToken[]) => found.map(({ at }) => at);
const idsOf = (found: readonly FoundToken[]) => found.map(({ id }) => id);
const hmacsOf = (found: readonly FoundToken[]) => found.map(({ hmac }) => hmac);
const placesOf = (found: readonly FoundToken[]) => found.map(({ place }) => place);

/**
 * Blocks those of the given tokens that are valid bot tokens. Returns the blocked tokens, including those that were
 * already blocked. No token may be passed twice.
 */
export function blockBotTokens(db: Database, found: readonly FoundToken[], by: string): Promise<Ended> {
  return db.transaction(async (sql) => {
    const held = await sql.rows<{ readonly at: number; readonly fresh: boolean }>`
      select g.at, b.blocked_hmac is distinct from b.token_hmac as fresh
      from unnest(${atsOf(found)}::int[], ${idsOf(found)}::bigint[], ${hmacsOf(found)}::bytea[]) as g(at, id,
        hmac)
      join bots b on b.id = g.id and b.token_hmac = g.hmac order by b.id for update of b`;
    const live = new Set(held.flatMap(({ at, fresh }) => (fresh ? [at] : [])));
    // A token that was looked up under several peppers has several entries. Keeps only the first valid entry of each
    // token.
    const ended = found.filter(({ at }) => live.delete(at));
    const { outbox } = (
      await sql.query<Ended>(endBotTokens, [by, atsOf(ended), idsOf(ended), placesOf(ended)])
    )[0] as Ended;
    return { hits: held.map(({ at }) => at), outbox };
  });
}

/**
 * Removes those of the given tokens that are valid tokens of people, and returns the removed tokens. No token may be
 * passed twice.
 */
export function removeLeakedUserTokens(
  db: Database,
  found: readonly FoundToken[],
  by: string,
): Promise<Ended> {
  const values = [by, atsOf(found), idsOf(found), placesOf(found), hmacsOf(found)];
  return db.transaction(async (sql) => (await sql.query<Ended>(endUserTokens, values))[0] as Ended);
}

export async function loadFormer(
  sql: Sql,
  found: ReadonlyArray<Pick<FoundToken, 'hmac'>>,
): Promise<Set<string>> {
  const former = await sql.column<string>`
    select encode(hmac, 'base64') from former_tokens
    where hmac = any(${found.map(({ hmac }) => hmac)}::bytea[])`;
  return new Set(former);
}

export const hasExisted = (sql: Sql, hmacs: readonly Buffer[]) => sql.some`
  select 1 from bots where token_hmac = any(${hmacs}::bytea[])
  union all select 1 from former_tokens where hmac = any(${hmacs}::bytea[])
  union all select 1 from user_tokens where hmac = any(${hmacs}::bytea[]) limit 1`;

/** Removes rows from the outbox. Call this after the stale copies were refreshed and the leaked tokens revoked. */
export async function strikeOffBlocked(sql: Sql, outbox: readonly number[]): Promise<void> {
  if (outbox.length === 0) return;
  await sql.run`delete from control_outbox where id = any(${outbox}::bigint[])`;
}

export interface LeakRow {
  readonly id: number;
  readonly bot_id: number | null;
  readonly username: string | null;
  readonly user_id: number | null;
  /** The Unix time in ms at which the leak was recorded. */
  readonly found_at: number;
  readonly reported_by: string;
  readonly place: string;
  /** Whether the bot's token is still blocked, because the bot has no new token yet. */
  readonly blocked: boolean;
}

export const listLeaks = (sql: Sql, before: number, limit: number) => sql.rows<LeakRow>`
  select l.id, l.bot_id, b.username, l.user_id, (extract(epoch from l.found_at) * 1000)::bigint as found_at,
        l.reported_by, l.place, coalesce(b.blocked_hmac = b.token_hmac, false) as blocked
   from leaks l left join bots b on b.id = l.bot_id
  where l.id < ${before} order by l.id desc limit ${limit}`;
