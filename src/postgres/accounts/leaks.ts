/** Statements on tokens that were found in public, and on former tokens. */
import { limits } from '../../limits.js';
import { type Database, one, type Sql } from '../sql.js';

/** A token that somebody found, with the bot or person whose it would be. */
export interface FoundToken {
  /** index of the token among the tokens that were found */
  readonly at: number;
  readonly id: number;
  readonly hmac: Buffer;
  /** place where the token was found; contains no tokens */
  readonly place: string;
}

/** The found tokens that were valid, and the outbox rows of their copies. */
export interface Ended {
  /** indexes of the tokens that were valid until now; for bots also of those blocked before */
  readonly hits: readonly number[];
  /** outbox rows that name the stale copies */
  readonly outbox: readonly number[];
}

/**
 * Delays between the notices of one report, so that a large report delays neither the management bot's conversations
 * with other people nor other clients' calls.
 */
const dueAt = `now() + (row_number() over (order by id) - 1) * ${limits.leak_notice_interval_ms} * interval '1 millisecond'`;

/**
 * SQL that records leaked tokens when they end, `ended` being the change: the leaks, notices to people, audit entries
 * and stale copies. It is one statement for any number of tokens; none of its parts joins another, so that no plan is
 * slow.
 */
const ending = (kind: 'bot' | 'user', ended: string, notice: string, more: string) =>
  `with ended as (${ended}), noted as (
     insert into leaks (${kind}_id, reported_by, place) select id, $1, place from ended
   ), told as (
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
 * Blocks the found tokens that are live tokens of bots. Returns them together with those blocked before. Each token
 * must be given once.
 */
export function blockBotTokens(db: Database, found: readonly FoundToken[], by: string): Promise<Ended> {
  return db.transaction(async (sql) => {
    const held = await sql.query<{ readonly at: number; readonly fresh: boolean }>(
      `select g.at, b.blocked_hmac is distinct from b.token_hmac as fresh
         from unnest($1::int[], $2::bigint[], $3::bytea[]) as g(at, id, hmac)
         join bots b on b.id = g.id and b.token_hmac = g.hmac order by b.id for update of b`,
      [atsOf(found), idsOf(found), hmacsOf(found)],
    );
    const live = new Set(held.flatMap(({ at, fresh }) => (fresh ? [at] : [])));
    // A token that is looked up under several peppers has several entries: the first live one names its bot.
    const ended = found.filter(({ at }) => live.delete(at));
    const { outbox } = await one<Ended>(sql, endBotTokens, [by, atsOf(ended), idsOf(ended), placesOf(ended)]);
    return { hits: held.map(({ at }) => at), outbox };
  });
}

/** Removes the found tokens that are live tokens of people, and returns them. Each token must be given once. */
export function removeLeakedUserTokens(
  db: Database,
  found: readonly FoundToken[],
  by: string,
): Promise<Ended> {
  const values = [by, atsOf(found), idsOf(found), placesOf(found), hmacsOf(found)];
  return db.transaction((sql) => one<Ended>(sql, endUserTokens, values));
}

/** The lookup values, in base64, under which a token was once valid. */
export async function loadFormer(
  sql: Sql,
  found: ReadonlyArray<Pick<FoundToken, 'hmac'>>,
): Promise<Set<string>> {
  const rows = await sql.query<{ hmac: string }>(
    "select encode(hmac, 'base64') as hmac from former_tokens where hmac = any($1::bytea[])",
    [found.map(({ hmac }) => hmac)],
  );
  return new Set(rows.map(({ hmac }) => hmac));
}

/** Whether a token, live, blocked or former, is stored under one of these lookup values. */
export async function hasExisted(sql: Sql, hmacs: readonly Buffer[]): Promise<boolean> {
  const rows = await sql.query(
    `select 1 from bots where token_hmac = any($1::bytea[])
     union all select 1 from former_tokens where hmac = any($1::bytea[])
     union all select 1 from user_tokens where hmac = any($1::bytea[]) limit 1`,
    [hmacs],
  );
  return rows.length > 0;
}

/** Removes outbox rows after their copies were refreshed and revoked. */
export async function strikeOffBlocked(sql: Sql, outbox: readonly number[]): Promise<void> {
  if (outbox.length === 0) return;
  await sql.query('delete from control_outbox where id = any($1::bigint[])', [outbox]);
}

export interface LeakRow {
  readonly id: number;
  readonly bot_id: number | null;
  /** username of the bot; null when the bot no longer exists */
  readonly username: string | null;
  readonly user_id: number | null;
  /** when the token was found, Unix time in ms */
  readonly found_at: number;
  readonly reported_by: string;
  readonly place: string;
  /** whether the bot has had no new token since */
  readonly blocked: boolean;
}

/** Leaks with ids below `before`, the latest first. */
export function listLeaks(sql: Sql, before: number, limit: number): Promise<LeakRow[]> {
  return sql.query<LeakRow>(
    `select l.id, l.bot_id, b.username, l.user_id, (extract(epoch from l.found_at) * 1000)::bigint as found_at,
            l.reported_by, l.place, coalesce(b.blocked_hmac = b.token_hmac, false) as blocked
       from leaks l left join bots b on b.id = l.bot_id
      where l.id < $1 order by l.id desc limit $2`,
    [before, limit],
  );
}
