/** Statements that re-encrypt stored secrets under new keys, and move lookup values to a new pepper. */
import { type Database, one, type Sql } from '../sql.js';

/** A copy in Redis that a batch has made stale, with its outbox row, which is removed once the copy is refreshed. */
export interface StaleCopy {
  readonly outboxId: number;
  readonly id: number;
}

export interface BotBox {
  readonly id: number;
  readonly token_box: Buffer;
  readonly token_hmac: Buffer;
}

/** Encrypted tokens of bots with ids greater than `after`, ordered by id. */
export function listBotBoxes(sql: Sql, after: number, limit: number): Promise<BotBox[]> {
  return sql.query(
    'select id, token_box, token_hmac from bots where id > $1 and token_box is not null order by id limit $2',
    [after, limit],
  );
}

/** Adds outbox rows of the given subject for stale copies; the sweep refreshes the copies if this process dies. */
async function noteCopies(sql: Sql, subject: string, ids: readonly number[]): Promise<StaleCopy[]> {
  const rows = await sql.query<{ id: number; subject_id: number }>(
    `insert into control_outbox (subject, subject_id) select $1, unnest($2::bigint[]) returning id, subject_id`,
    [subject, ids],
  );
  return rows.map((row) => ({ outboxId: row.id, id: row.subject_id }));
}

export interface BotBoxChange {
  readonly was: BotBox;
  readonly box: Buffer;
  readonly hmac: Buffer;
}

/** Changes bots whose token is still the one that was read, and returns the copies in Redis that became stale. */
export function replaceBotBoxes(
  db: Database,
  changes: readonly BotBoxChange[],
): Promise<{ readonly changed: number; readonly stale: readonly StaleCopy[] }> {
  return db.transaction(async (sql) => {
    await sql.query("select set_config('petrel.rotating', '1', true)");
    const ids = changes.map(({ was }) => was.id);
    await sql.query('select 1 from bots where id = any($1::bigint[]) order by id for update', [ids]);
    const rows = await sql.query<{ id: number; moved: boolean }>(
      `update bots b set token_box = n.box, token_hmac = n.hmac,
              blocked_hmac = case when b.blocked_hmac = n.was_hmac then n.hmac else b.blocked_hmac end,
              version = case when n.hmac = n.was_hmac then b.version else nextval('control_versions') end
         from unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[]) as n(id, was_box, box, was_hmac, hmac)
        where b.id = n.id and b.token_box = n.was_box and b.token_hmac = n.was_hmac
        returning b.id, n.hmac <> n.was_hmac as moved`,
      [
        ids,
        changes.map(({ was }) => was.token_box),
        changes.map(({ box }) => box),
        changes.map(({ was }) => was.token_hmac),
        changes.map(({ hmac }) => hmac),
      ],
    );
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
}

/** Encrypted webhook fields of bots with ids greater than `after`, ordered by bot id. */
export function listWebhookBoxes(sql: Sql, after: number, limit: number): Promise<WebhookBoxes[]> {
  return sql.query(
    `select bot_id, url_box, secret_box, signing_box, former_signing_box from webhooks
      where bot_id > $1 order by bot_id limit $2`,
    [after, limit],
  );
}

export interface WebhookBoxesChange {
  readonly was: WebhookBoxes;
  readonly next: WebhookBoxes;
}

/** Changes webhooks whose encrypted fields are still as read; returns the copies in Redis that became stale. */
export function replaceWebhookBoxes(
  db: Database,
  changes: readonly WebhookBoxesChange[],
): Promise<readonly StaleCopy[]> {
  const column = (read: (boxes: WebhookBoxes) => Buffer | null) => [
    changes.map(({ was }) => read(was)),
    changes.map(({ next }) => read(next)),
  ];
  return db.transaction(async (sql) => {
    const ids = changes.map(({ was }) => was.bot_id);
    await sql.query('select 1 from webhooks where bot_id = any($1::bigint[]) order by bot_id for update', [
      ids,
    ]);
    const rows = await sql.query<{ id: number }>(
      `update webhooks w set url_box = n.url, secret_box = n.secret, signing_box = n.signing,
              former_signing_box = n.former, sealed_version = nextval('control_versions')
         from unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[],
                     $8::bytea[], $9::bytea[])
              as n(id, was_url, url, was_secret, secret, was_signing, signing, was_former, former)
        where w.bot_id = n.id and w.url_box is not distinct from n.was_url
          and w.secret_box is not distinct from n.was_secret and w.signing_box = n.was_signing
          and w.former_signing_box is not distinct from n.was_former
        returning w.bot_id as id`,
      [
        ids,
        ...column((boxes) => boxes.url_box),
        ...column((boxes) => boxes.secret_box),
        ...column((boxes) => boxes.signing_box),
        ...column((boxes) => boxes.former_signing_box),
      ],
    );
    return noteCopies(
      sql,
      'webhook_copy',
      rows.map((row) => row.id),
    );
  });
}

/** Removes outbox rows of copies that were refreshed. */
export async function strikeOff(sql: Sql, copies: readonly StaleCopy[]): Promise<void> {
  if (copies.length === 0) return;
  await sql.query('delete from control_outbox where id = any($1::bigint[])', [
    copies.map(({ outboxId }) => outboxId),
  ]);
}

/** Every column with encrypted values. A test compares this with the schema. */
export const boxColumns = {
  bots: ['token_box'],
  webhooks: ['url_box', 'secret_box', 'signing_box', 'former_signing_box'],
} as const;

/**
 * Counts the values in Postgres that are encrypted under another key than `key`, and the pending copies that may
 * contain such values.
 */
export async function countFormer(
  sql: Sql,
  key: string,
): Promise<{ readonly boxes: number; readonly copies: number }> {
  const former = Object.entries(boxColumns).flatMap(([table, columns]) =>
    columns.map(
      (column) =>
        `(select count(*) from ${table} where substr(${column}, 2, get_byte(${column}, 0)) <> convert_to($1, 'UTF8'))`,
    ),
  );
  return one(
    sql,
    `select ${former.join(' + ')} as boxes,
            (select count(*) from control_outbox where subject in ('bot_copy', 'webhook_copy')) as copies`,
    [key],
  );
}

/** Values on which all nodes must agree, such as the ids of keys in use and the check value of the pepper. */
export async function readInstallation(sql: Sql): Promise<Map<string, string>> {
  const rows = await sql.query<{ name: string; value: string }>('select name, value from installation');
  return new Map(rows.map(({ name, value }) => [name, value]));
}

/** Stores values whose names are not stored yet. */
export async function noteInstallation(sql: Sql, values: ReadonlyMap<string, string>): Promise<void> {
  await sql.query(
    'insert into installation (name, value) select * from unnest($1::text[], $2::text[]) on conflict do nothing',
    [[...values.keys()], [...values.values()]],
  );
}

/** Replaces a value if it is still `was`. Returns whether it was replaced. */
export async function replaceInstallation(
  sql: Sql,
  name: string,
  was: string,
  value: string,
): Promise<boolean> {
  const rows = await sql.query(
    'update installation set value = $3 where name = $1 and value = $2 returning 1',
    [name, was, value],
  );
  return rows.length > 0;
}

/** Records that nothing is encrypted under these keys any more, so that nodes may run without them. */
export async function retireKeys(sql: Sql, ids: readonly string[]): Promise<void> {
  await sql.query('delete from installation where name = any($1::text[])', [
    ids.map((id) => `TOKEN_KEYS ${id}`),
  ]);
}

/**
 * Makes `pepper` the one that nodes must have, unless it already is. Returns how many tokens of people may still be
 * stored under a former pepper: those that existed at the change and have not been used since.
 */
export function adoptPepper(db: Database, pepper: string): Promise<number> {
  return db.transaction(async (sql) => {
    await sql.query("select 1 from installation where name = 'TOKEN_PEPPER' for update");
    const rows = await sql.query(
      "update installation set value = $1 where name = 'TOKEN_PEPPER' and value <> $1 returning 1",
      [pepper],
    );
    if (rows.length > 0) await sql.query('update user_tokens set former_pepper = true');
    const { count } = await one<{ count: number }>(
      sql,
      'select count(*) as count from user_tokens where former_pepper',
    );
    return Number(count);
  });
}

/**
 * Stores a person's token under another lookup value, if `pepper` is the one that nodes must have. Returns whether it
 * did.
 */
export function moveUserToken(
  db: Database,
  user: number,
  was: Buffer,
  hmac: Buffer,
  pepper: string,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    await sql.query('select 1 from users where id = $1 for update', [user]);
    const rows = await sql.query(
      `update user_tokens set hmac = $3, former_pepper = false
        where user_id = $1 and hmac = $2
          and exists (select 1 from installation where name = 'TOKEN_PEPPER' and value = $4) returning 1`,
      [user, was, hmac, pepper],
    );
    if (rows.length === 0) return false;
    await sql.query("update users set version = nextval('control_versions') where id = $1", [user]);
    await noteCopies(sql, 'user_copy', [user]);
    return true;
  });
}
