/** Statements on tokens that were found in public, and on tokens that were valid once. */
import { limits } from '../../limits.js';
import { type Database, one, type Sql } from '../sql.js';

/** A token that somebody found, by whose it would be. */
export interface FoundToken {
  /** which one it is of those that were found */
  readonly at: number;
  readonly id: number;
  readonly hmac: Buffer;
  /** where, without tokens */
  readonly place: string;
}

/** What became of tokens that were found. */
export interface Ended {
  /** which tokens were valid until now, or, of bots, were blocked before */
  readonly hits: readonly number[];
  /** rows of the outbox that name the copies which are stale */
  readonly outbox: readonly number[];
}

/**
 * Those of a large report are told one after the other, so that the conversations of others with the management bot, and the
 * calls of other clients, are not held up.
 */
const dueAt = `now() + (row_number() over (order by id) - 1) * ${limits.leak_notice_interval_ms} * interval '1 millisecond'`;

/**
 * What is noted with the tokens that end, `ended` being the change: what leaked, what people are told, what the audit log shows
 * and which copies are stale. One statement, however many there are; none of its parts joins another, so that no plan is slow.
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

/** Blocks those that are live tokens of bots. Returns them with those that were blocked before. Each token is given once. */
export function blockBotTokens(db: Database, found: readonly FoundToken[], by: string): Promise<Ended> {
  return db.transaction(async (sql) => {
    const held = await sql.query<{ readonly at: number; readonly fresh: boolean }>(
      `select g.at, b.blocked_hmac is distinct from b.token_hmac as fresh
         from unnest($1::int[], $2::bigint[], $3::bytea[]) as g(at, id, hmac)
         join bots b on b.id = g.id and b.token_hmac = g.hmac order by b.id for update of b`,
      [atsOf(found), idsOf(found), hmacsOf(found)],
    );
    const live = new Set(held.flatMap(({ at, fresh }) => (fresh ? [at] : [])));
    // Of a token that is looked up under several peppers any one names its bot.
    const ended = found.filter(({ at }) => live.delete(at));
    const { outbox } = await one<Ended>(sql, endBotTokens, [by, atsOf(ended), idsOf(ended), placesOf(ended)]);
    return { hits: held.map(({ at }) => at), outbox };
  });
}

/** Removes those that are live tokens of people, and returns them. Each token is given once. */
export function removeLeakedUserTokens(
  db: Database,
  found: readonly FoundToken[],
  by: string,
): Promise<Ended> {
  const values = [by, atsOf(found), idsOf(found), placesOf(found), hmacsOf(found)];
  return db.transaction((sql) => one<Ended>(sql, endUserTokens, values));
}

/** Those of these lookup values under which a token was valid once, base64. */
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

/** Whether a token is or was found under one of these lookup values, blocked ones too. */
export async function hasExisted(sql: Sql, hmacs: readonly Buffer[]): Promise<boolean> {
  const rows = await sql.query(
    `select 1 from bots where token_hmac = any($1::bytea[])
     union all select 1 from former_tokens where hmac = any($1::bytea[])
     union all select 1 from user_tokens where hmac = any($1::bytea[]) limit 1`,
    [hmacs],
  );
  return rows.length > 0;
}

/** Strikes copies off that are refreshed and revoked. */
export async function strikeOffBlocked(sql: Sql, outbox: readonly number[]): Promise<void> {
  if (outbox.length === 0) return;
  await sql.query('delete from control_outbox where id = any($1::bigint[])', [outbox]);
}

export interface LeakRow {
  readonly id: number;
  readonly bot_id: number | null;
  /** of a bot that is there */
  readonly username: string | null;
  readonly user_id: number | null;
  /** ms */
  readonly found_at: number;
  readonly reported_by: string;
  readonly place: string;
  /** the bot has had no new token since */
  readonly blocked: boolean;
}

/** Leaks before an id, the latest first. */
export function listLeaks(sql: Sql, before: number, limit: number): Promise<LeakRow[]> {
  return sql.query<LeakRow>(
    `select l.id, l.bot_id, b.username, l.user_id, (extract(epoch from l.found_at) * 1000)::bigint as found_at,
            l.reported_by, l.place, coalesce(b.blocked_hmac = b.token_hmac, false) as blocked
       from leaks l left join bots b on b.id = l.bot_id
      where l.id < $1 order by l.id desc limit $2`,
    [before, limit],
  );
}
