/** Statements on the webhooks of bots. */
import { type Database, noteStale, one, type Sql } from './sql.js';

/** What a call sets. */
export interface WebhookColumns {
  /** sealed; null ends webhook mode */
  readonly url_box: Buffer | null;
  /** sealed */
  readonly secret_box: Buffer | null;
  /** PEM */
  readonly certificate: string | null;
  readonly max_connections: number;
  readonly ip_address: string | null;
}

export interface WebhookRow extends WebhookColumns {
  /** sealed */
  readonly signing_box: Buffer;
  /** sealed; still signs until `former_until` */
  readonly former_signing_box: Buffer | null;
  /** ms */
  readonly former_until: number | null;
  readonly version: number;
  /** orders copies: `version`, or what a new encryption key has made of it */
  readonly copy_version: number;
}

const columns = `url_box, secret_box, certificate, max_connections, ip_address, signing_box, former_signing_box,
  (extract(epoch from former_until) * 1000)::bigint as former_until, version, greatest(version, sealed_version) as copy_version`;

/**
 * Sets the webhook of a bot, or with a null URL ends it. `signing` is its sealed signing secret if it has none yet. `drop` asks
 * the refresh of the bot's queue to drop what waits. Returns the new version and whether `differs` said so of the row as it was.
 * With `only`, changes nothing and returns null unless the row has that version.
 */
export function setWebhook(
  db: Database,
  bot: number,
  next: WebhookColumns,
  ask: {
    readonly signing: Buffer;
    readonly drop: boolean;
    readonly only: number | null;
    readonly differs: (was: WebhookRow | null) => boolean;
  },
): Promise<{ readonly differed: boolean; readonly version: number } | null> {
  const { signing, drop, only, differs } = ask;
  return db.transaction(async (sql) => {
    // Two calls for one bot wait for each other, also where there is no row yet.
    await sql.query('select 1 from bots where id = $1 for update', [bot]);
    const was = await loadWebhook(sql, bot);
    if (only !== null && was?.version !== only) return null;
    const { version } = await one<{ version: number }>(
      sql,
      `insert into webhooks (bot_id, url_box, secret_box, certificate, max_connections, ip_address, signing_box)
       values ($1, $2, $3, $4, $5, $6, $7)
       on conflict (bot_id) do update set url_box = $2, secret_box = $3, certificate = $4, max_connections = $5,
         ip_address = $6, version = nextval('control_versions'), set_at = now()
       returning version`,
      [
        bot,
        next.url_box,
        next.secret_box,
        next.certificate,
        next.max_connections,
        next.ip_address,
        was?.signing_box ?? signing,
      ],
    );
    await noteStale(sql, [['webhook', bot, drop ? version : 0]]);
    return { differed: differs(was), version };
  });
}

export async function loadWebhook(sql: Sql, bot: number): Promise<WebhookRow | null> {
  const [row] = await sql.query<WebhookRow>(`select ${columns} from webhooks where bot_id = $1`, [bot]);
  return row ?? null;
}

/** Gives a bot a signing secret if it has none; returns its row, and whether it is new. */
export function ensureWebhook(
  db: Database,
  bot: number,
  signing: Buffer,
): Promise<{ readonly row: WebhookRow; readonly made: boolean }> {
  return db.transaction(async (sql) => {
    const { count } = await one<{ count: number }>(
      sql,
      `with made as (
         insert into webhooks (bot_id, signing_box) values ($1, $2) on conflict do nothing returning 1
       ) select count(*) as count from made`,
      [bot, signing],
    );
    const row = await one<WebhookRow>(sql, `select ${columns} from webhooks where bot_id = $1`, [bot]);
    if (count > 0) await noteStale(sql, [['webhook', bot]]);
    return { row, made: count > 0 };
  });
}

/**
 * Puts a new signing secret in the place of a bot's, if `owner` owns the bot now; the former one signs until `overlapMs` later.
 * False when not.
 */
export function rotateSigning(
  db: Database,
  bot: number,
  owner: number,
  signing: Buffer,
  overlapMs: number,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    const [owned] = await sql.query('select 1 from bots where id = $1 and owner_id = $2 for update', [
      bot,
      owner,
    ]);
    if (owned === undefined) return false;
    await noteStale(sql, [['webhook', bot]]);
    await sql.query(
      `insert into webhooks as w (bot_id, signing_box) values ($1, $2)
       on conflict (bot_id) do update set former_signing_box = w.signing_box, signing_box = $2,
         former_until = now() + $3::bigint * interval '1 millisecond', version = nextval('control_versions')`,
      [bot, signing, overlapMs],
    );
    return true;
  });
}

/** Bots with a webhook behind an id, in the order of their ids. */
export function listWebhooks(
  sql: Sql,
  after: number,
  limit: number,
): Promise<Array<{ readonly id: number; readonly username: string }>> {
  return sql.query(
    `select b.id, b.username from webhooks w join bots b on b.id = w.bot_id
      where w.url_box is not null and w.bot_id > $1 order by w.bot_id limit $2`,
    [after, limit],
  );
}
