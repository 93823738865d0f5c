/** Statements on tokens that were found in public, and on tokens that were valid once. */
import type { Database, Sql } from './sql.js';

/** A token that somebody found, by whose it would be. */
export interface FoundToken {
  readonly id: number;
  readonly hmac: Buffer;
  /** where, without tokens */
  readonly place: string;
}

export interface BlockedToken {
  readonly id: number;
  /** base64 */
  readonly hmac: string;
  /** false for one that was blocked before */
  readonly fresh: boolean;
  /** of a bot */
  readonly owner: number;
  /** the row of the outbox that names the copy; null where nothing changed */
  readonly outbox: number | null;
  readonly place: string;
}

const arrays = (found: readonly FoundToken[]) => [
  found.map(({ id }) => id),
  found.map(({ hmac }) => hmac),
  found.map(({ place }) => place),
];

const reported =
  'select distinct on (id, hmac) id, hmac, place from unnest($1::bigint[], $2::bytea[], $3::text[]) as r(id, hmac, place)';

/** Blocks those that are live tokens of bots, in one statement. Returns them with those that were blocked before. */
export function blockBotTokens(
  db: Database,
  found: readonly FoundToken[],
  by: string,
): Promise<BlockedToken[]> {
  return db.transaction((sql) =>
    sql.query<BlockedToken>(
      `with reported as (${reported}),
       held as (
         select b.id, b.owner_id, r.place, r.hmac, b.blocked_hmac is distinct from b.token_hmac as fresh
           from bots b join reported r on b.id = r.id and b.token_hmac = r.hmac order by b.id for update of b),
       changed as (
         update bots b set blocked_hmac = b.token_hmac, blocked_at = now(), version = nextval('control_versions')
           from held where b.id = held.id and held.fresh returning b.id),
       noted as (insert into leaks (bot_id, reported_by, place) select id, $4, place from held where fresh),
       stale as (insert into control_outbox (subject, subject_id) select 'bot', id from changed
                 returning id, subject_id)
       select held.id, encode(held.hmac, 'base64') as hmac, held.fresh, held.owner_id as owner, held.place,
              stale.id as outbox
         from held left join stale on stale.subject_id = held.id`,
      [...arrays(found), by],
    ),
  );
}

/** Removes those that are live tokens of people, and returns them. */
export function removeLeakedUserTokens(
  db: Database,
  found: readonly FoundToken[],
  by: string,
): Promise<BlockedToken[]> {
  return db.transaction((sql) =>
    sql.query<BlockedToken>(
      `with reported as (${reported}),
       gone as (
         delete from user_tokens t using reported r where t.user_id = r.id and t.hmac = r.hmac
         returning t.user_id as id, t.hmac, r.place),
       changed as (
         update users set version = nextval('control_versions') where id in (select id from gone) returning id),
       noted as (insert into leaks (user_id, reported_by, place) select id, $4, place from gone),
       stale as (insert into control_outbox (subject, subject_id) select 'user', id from changed
                 returning id, subject_id)
       select gone.id, encode(gone.hmac, 'base64') as hmac, true as fresh, gone.id as owner, gone.place,
              stale.id as outbox
         from gone left join stale on stale.subject_id = gone.id`,
      [...arrays(found), by],
    ),
  );
}

/** Those of these lookup values under which a token was valid once, base64. */
export async function loadFormer(sql: Sql, hmacs: readonly Buffer[]): Promise<Set<string>> {
  const rows = await sql.query<{ hmac: string }>(
    "select encode(hmac, 'base64') as hmac from former_tokens where hmac = any($1::bytea[])",
    [hmacs],
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
