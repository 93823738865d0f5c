/** Encrypts stored secrets again with a new key, and moves lookup values to a new pepper. */
import { type Database, fragment, type Sql } from '../sql.js';

/** A copy in Redis that became stale, and its row in the outbox. The row is removed after the copy is refreshed. */
export interface StaleCopy {
  readonly outboxId: number;
  readonly id: number;
}

export interface BotBox {
  readonly id: number;
  readonly token_box: Buffer;
  readonly token_hmac: Buffer;
}

export const listBotBoxes = (sql: Sql, after: number, limit: number) => sql.rows<BotBox>`
  select id, token_box, token_hmac from bots where id > ${after} and token_box is not null
  order by id limit ${limit}`;

/**
 * Adds outbox rows for stale copies. If this process dies, the outbox sweep refreshes the copies. `subject` is the kind
 * of the copies.
 */
const noteCopies = (sql: Sql, subject: string, ids: readonly number[]) => sql.rows<StaleCopy>`
  insert into control_outbox (subject, subject_id) select ${subject}, unnest(${ids}::bigint[])
  returning id as "outboxId", subject_id as id`;

export interface BotBoxChange {
  readonly was: BotBox;
  readonly box: Buffer;
  readonly hmac: Buffer;
}

/**
 * Replaces encrypted tokens, except those that changed since they were loaded. Returns the copies in Redis that became
 * stale.
 */
export function replaceBotBoxes(
  db: Database,
  changes: readonly BotBoxChange[],
): Promise<{ readonly changed: number; readonly stale: readonly StaleCopy[] }> {
  return db.transaction(async (sql) => {
    await sql.run`select set_config('petrel.rotating', '1', true)`;
    const ids = changes.map(({ was }) => was.id);
    await sql.run`select 1 from bots where id = any(${ids}::bigint[]) order by id for update`;
    const rows = await sql.rows<{ id: number; moved: boolean }>`
      update bots b set token_box = n.box, token_hmac = n.hmac,
        blocked_hmac = case when b.blocked_hmac = n.was_hmac then n.hmac else b.blocked_hmac end,
        version = case when n.hmac = n.was_hmac then b.version else nextval('control_versions') end
      from unnest(${ids}::bigint[], ${changes.map(({ was }) => was.token_box)}::bytea[],
        ${changes.map(({ box }) => box)}::bytea[], ${changes.map(({ was }) => was.token_hmac)}::bytea[],
        ${changes.map(({ hmac }) => hmac)}::bytea[]) as n(id, was_box, box, was_hmac, hmac)
      where b.id = n.id and b.token_box = n.was_box and b.token_hmac = n.was_hmac
      returning b.id, n.hmac <> n.was_hmac as moved`;
    const moved = rows.filter((row) => row.moved).map((row) => row.id);
    return { changed: rows.length, stale: await noteCopies(sql, 'bot_copy', moved) };
  });
}

export interface WebhookBoxes {
  readonly bot_id: number;
  readonly url_box: Buffer | null;
  readonly secret_box: Buffer | null;
  readonly signing_box: Buffer;
  readonly former_signing_box: Buffer | null;
  readonly routes_box: Buffer | null;
}

export const listWebhookBoxes = (sql: Sql, after: number, limit: number) => sql.rows<WebhookBoxes>`
  select bot_id, url_box, secret_box, signing_box, former_signing_box, routes_box from webhooks
  where bot_id > ${after} order by bot_id limit ${limit}`;

export interface WebhookBoxesChange {
  readonly was: WebhookBoxes;
  readonly next: WebhookBoxes;
}

/**
 * Replaces encrypted webhook fields, except those that changed since they were loaded. Returns the copies in Redis that
 * became stale.
 */
export function replaceWebhookBoxes(
  db: Database,
  changes: readonly WebhookBoxesChange[],
): Promise<readonly StaleCopy[]> {
  const was = (name: keyof WebhookBoxes) => changes.map((change) => change.was[name]);
  const next = (name: keyof WebhookBoxes) => changes.map((change) => change.next[name]);
  return db.transaction(async (sql) => {
    const ids = was('bot_id');
    await sql.run`select 1 from webhooks where bot_id = any(${ids}::bigint[]) order by bot_id for update`;
    const changed = await sql.column<number>`
      update webhooks w set url_box = n.url, secret_box = n.secret, signing_box = n.signing,
        former_signing_box = n.former, routes_box = n.routes, sealed_version = nextval('control_versions')
      from unnest(${ids}::bigint[], ${was('url_box')}::bytea[], ${next('url_box')}::bytea[],
        ${was('secret_box')}::bytea[], ${next('secret_box')}::bytea[],
        ${was('signing_box')}::bytea[], ${next('signing_box')}::bytea[],
        ${was('former_signing_box')}::bytea[], ${next('former_signing_box')}::bytea[],
        ${was('routes_box')}::bytea[], ${next('routes_box')}::bytea[])
        as n(id, was_url, url, was_secret, secret, was_signing, signing, was_former, former, was_routes, routes)
      where w.bot_id = n.id and w.url_box is not distinct from n.was_url
        and w.secret_box is not distinct from n.was_secret and w.signing_box = n.was_signing
        and w.former_signing_box is not distinct from n.was_former
        and w.routes_box is not distinct from n.was_routes
      returning w.bot_id`;
    return noteCopies(sql, 'webhook_copy', changed);
  });
}

export async function strikeOff(sql: Sql, copies: readonly StaleCopy[]): Promise<void> {
  if (copies.length === 0) return;
  await sql.run`
    delete from control_outbox where id = any(${copies.map(({ outboxId }) => outboxId)}::bigint[])`;
}

/** The columns with encrypted values. A test compares this list with the schema. */
export const boxColumns = {
  bots: ['token_box'],
  webhooks: ['url_box', 'secret_box', 'signing_box', 'former_signing_box', 'routes_box'],
} as const;

/**
 * Counts the values in Postgres that are encrypted with another key than `key`, and the stale copies that may contain
 * such values.
 */
export function countFormer(sql: Sql, key: string) {
  const former = Object.entries(boxColumns).flatMap(([table, columns]) =>
    columns.map(
      (column) =>
        `(select count(*) from ${table} where substr(${column}, 2, get_byte(${column}, 0)) <> own.key)`,
    ),
  );
  return sql.one<{ readonly boxes: number; readonly copies: number }>`
    with own as (select convert_to(${key}, 'UTF8') as key)
    select ${fragment(former.join(' + '))} as boxes,
      (select count(*) from control_outbox where subject in ('bot_copy', 'webhook_copy')) as copies from own`;
}

/**
 * Loads the values that must be the same on all nodes, such as the ids of the keys in use and the check value of the
 * pepper.
 */
export async function readInstallation(sql: Sql): Promise<Map<string, string>> {
  const rows = await sql.rows<{ name: string; value: string }>`select name, value from installation`;
  return new Map(rows.map(({ name, value }) => [name, value]));
}

export const noteInstallation = (sql: Sql, values: ReadonlyMap<string, string>) => sql.run`
  insert into installation (name, value) select *
  from unnest(${[...values.keys()]}::text[], ${[...values.values()]}::text[]) on conflict do nothing`;

export const replaceInstallation = (sql: Sql, name: string, was: string, value: string) => sql.some`
  update installation set value = ${value} where name = ${name} and value = ${was} returning 1`;

/** Records that no value is encrypted with these keys any more, so that nodes may start without them. */
export const retireKeys = (sql: Sql, ids: readonly string[]) => sql.run`
  delete from installation where name = any(${ids.map((id) => `TOKEN_KEYS ${id}`)}::text[])`;

/**
 * Makes `pepper` the pepper that all nodes must use. Returns how many tokens of people may still be stored under a
 * former pepper, because they existed when the pepper changed and have not been used since.
 */
export function adoptPepper(db: Database, pepper: string): Promise<number> {
  return db.transaction(async (sql) => {
    await sql.run`select 1 from installation where name = 'TOKEN_PEPPER' for update`;
    const changed = await sql.some`
      update installation set value = ${pepper} where name = 'TOKEN_PEPPER' and value <> ${pepper}
      returning 1`;
    if (changed) await sql.run`update user_tokens set former_pepper = true`;
    return sql.value<number>`select count(*) from user_tokens where former_pepper`;
  });
}

/**
 * Stores a person's token under another lookup value, but only if `pepper` is the pepper that all nodes must use.
 * Returns whether the token was stored.
 */
export function moveUserToken(
  db: Database,
  user: number,
  was: Buffer,
  hmac: Buffer,
  pepper: string,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    await sql.run`select 1 from users where id = ${user} for update`;
    const moved = await sql.some`
      update user_tokens set hmac = ${hmac}, former_pepper = false
      where user_id = ${user} and hmac = ${was}
        and exists (select 1 from installation where name = 'TOKEN_PEPPER' and value = ${pepper})
        returning 1`;
    if (!moved) return false;
    await sql.run`update users set version = nextval('control_versions') where id = ${user}`;
    await noteCopies(sql, 'user_copy', [user]);
    return true;
  });
}
