/** Statements on tokens that were found in public, and on tokens that were valid once. */
import { noteAudits } from './audit.js';
import { type Notice, tellPeople } from './notices.js';
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

/** Each token once: `places` of the rest are left out. */
function distinct(found: readonly FoundToken[]): [number[], Buffer[], string[]] {
  const all = [...new Map(found.map((each) => [each.hmac.toString('base64'), each])).values()];
  return [all.map(({ id }) => id), all.map(({ hmac }) => hmac), all.map(({ place }) => place)];
}

interface Held {
  readonly id: number;
  readonly hmac: string;
  readonly fresh: boolean;
  readonly owner: number;
  readonly place: string;
  /** username of a bot, or what a person calls the token */
  readonly name: string;
}

/** Who is told of it, and how: the owner of a bot, or the person. */
const noticeOf = (kind: 'bot' | 'user', { id, name, place }: Held): Notice =>
  kind === 'bot'
    ? { kind: 'leak_found', bot: id, username: name, where: place }
    : { kind: 'user_token_leaked', name, where: place };

/** Notes what leaked and which copies that makes stale. */
async function note(
  sql: Sql,
  kind: 'bot' | 'user',
  held: readonly Held[],
  by: string,
): Promise<BlockedToken[]> {
  const fresh = held.filter((each) => each.fresh);
  const ids = [...new Set(fresh.map(({ id }) => id))];
  await sql.query(
    `insert into leaks (${kind}_id, reported_by, place) select id, $3, place from unnest($1::bigint[], $2::text[]) as r(id, place)`,
    [fresh.map(({ id }) => id), fresh.map(({ place }) => place), by],
  );
  await tellPeople(
    sql,
    fresh.map((each) => ({ user: each.owner, notice: noticeOf(kind, each) })),
  );
  if (kind === 'bot')
    await noteAudits(
      sql,
      'leak_found',
      fresh.map(({ id, place }) => ({ bot: id, details: { where: place } })),
    );
  const stale = await sql.query<{ id: number; subject_id: number }>(
    'insert into control_outbox (subject, subject_id) select $1, unnest($2::bigint[]) returning id, subject_id',
    [kind, ids],
  );
  const outbox = new Map(stale.map((row) => [row.subject_id, row.id]));
  return held.map((each) => ({ ...each, outbox: each.fresh ? (outbox.get(each.id) ?? null) : null }));
}

/** Blocks those that are live tokens of bots. Returns them with those that were blocked before. */
export function blockBotTokens(
  db: Database,
  found: readonly FoundToken[],
  by: string,
): Promise<BlockedToken[]> {
  return db.transaction(async (sql) => {
    const held = await sql.query<Held>(
      `select b.id, encode(r.hmac, 'base64') as hmac, b.blocked_hmac is distinct from b.token_hmac as fresh,
              b.owner_id as owner, r.place, b.username as name
         from unnest($1::bigint[], $2::bytea[], $3::text[]) as r(id, hmac, place)
         join bots b on b.id = r.id and b.token_hmac = r.hmac order by b.id for update of b`,
      distinct(found),
    );
    await sql.query(
      `update bots set blocked_hmac = token_hmac, blocked_at = now(), version = nextval('control_versions')
        where id = any($1::bigint[])`,
      [held.filter(({ fresh }) => fresh).map(({ id }) => id)],
    );
    return note(sql, 'bot', held, by);
  });
}

/** Removes those that are live tokens of people, and returns them. */
export function removeLeakedUserTokens(
  db: Database,
  found: readonly FoundToken[],
  by: string,
): Promise<BlockedToken[]> {
  return db.transaction(async (sql) => {
    const removed = await sql.query<Held>(
      `delete from user_tokens t using unnest($1::bigint[], $2::bytea[], $3::text[]) as r(id, hmac, place)
        where t.user_id = r.id and t.hmac = r.hmac
        returning t.user_id as id, encode(t.hmac, 'base64') as hmac, true as fresh, t.user_id as owner, r.place, t.name`,
      distinct(found),
    );
    await sql.query("update users set version = nextval('control_versions') where id = any($1::bigint[])", [
      removed.map(({ id }) => id),
    ]);
    return note(sql, 'user', removed, by);
  });
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
