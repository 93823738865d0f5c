/** Statements on the webhooks of bots. */
import { fail } from '../../errors.js';
import { noteAudit } from '../bots/audit.js';
import { tellPerson } from '../bots/notices.js';
import { type Database, noteStale, one, type Sql } from '../sql.js';

/** Columns that a `setWebhook` call sets. */
export interface WebhookColumns {
  /** encrypted URL; null ends webhook mode */
  readonly url_box: Buffer | null;
  /** encrypted secret that is sent with each request */
  readonly secret_box: Buffer | null;
  /** certificate to trust for the receiver, in PEM */
  readonly certificate: string | null;
  readonly max_connections: number;
  readonly ip_address: string | null;
}

export interface WebhookRow extends WebhookColumns {
  /** encrypted signing secret */
  readonly signing_box: Buffer;
  /** encrypted former signing secret, which still signs until `former_until` */
  readonly former_signing_box: Buffer | null;
  /** end of the former signing secret, Unix time in ms */
  readonly former_until: number | null;
  readonly version: number;
  /** version of the last `setWebhook` or `deleteWebhook`; a new signing secret does not change it */
  readonly set_version: number;
  /** whether the bot is suspended, which pauses its deliveries */
  readonly suspended: boolean;
  /** version that orders copies: `version`, or a later one after re-encryption */
  readonly copy_version: number;
}

const columns = `url_box, secret_box, certificate, max_connections, ip_address, signing_box, former_signing_box,
  (extract(epoch from former_until) * 1000)::bigint as former_until, version, set_version,
  exists (select from bots b where b.id = bot_id and b.suspended_at is not null) as suspended,
  greatest(version, sealed_version) as copy_version`;

/** Effect of `setWebhook`; null when nothing had to be changed. */
export interface WebhookChange {
  readonly differed: boolean;
  readonly version: number;
  readonly setVersion: number;
}

/**
 * Sets the webhook of a bot; a null URL ends it. `signing` is the encrypted signing secret to store if the bot has
 * none yet. `drop` makes the refresh of the bot's queue drop pending updates. Returns the new version and the result
 * of `differs` on the former row. With `only`, which a delivery uses to end a webhook, the call notifies the owner;
 * it changes nothing and returns null unless the row has that version and there is something to end or to drop.
 * Error: `unauthorized` for a bot that was deleted or suspended meanwhile.
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
): Promise<WebhookChange | null> {
  const { signing, drop, only, differs } = ask;
  return db.transaction(async (sql) => {
    // Concurrent calls for one bot wait here, even if there is no row yet.
    const [lives] = await sql.query<{ suspended: boolean; owner: number | null; username: string }>(
      `select suspended_at is not null as suspended, owner_id as owner, username
         from bots where id = $1 and deleted_at is null for update`,
      [bot],
    );
    if (lives === undefined || lives.suspended) {
      if (only !== null) return null;
      // The token was valid when the call began.
      fail('unauthorized');
    }
    const was = await loadWebhook(sql, bot);
    if (only !== null && was?.version !== only) return null;
    const sets = next.url_box !== null || (was?.url_box ?? null) !== null;
    if (!sets && !drop) return null;
    const { version, set_version } = await one<Pick<WebhookRow, 'version' | 'set_version'>>(
      sql,
      `insert into webhooks as w
         (bot_id, url_box, secret_box, certificate, max_connections, ip_address, signing_box, version, set_version)
       select $1, $2, $3, $4, $5, $6, $7, v, case when $8 then v else 0 end
         from (select nextval('control_versions') as v) as new
       on conflict (bot_id) do update set url_box = $2, secret_box = $3, certificate = $4, max_connections = $5,
         ip_address = $6, version = excluded.version,
         set_version = case when $8 then excluded.version else w.set_version end,
         set_at = case when $8 then now() else w.set_at end,
         failing_since = case when $8 then null else w.failing_since end,
         failing_told_at = case when $8 then null else w.failing_told_at end
       returning version, set_version`,
      [
        bot,
        next.url_box,
        next.secret_box,
        next.certificate,
        next.max_connections,
        next.ip_address,
        was?.signing_box ?? signing,
        sets,
      ],
    );
    await noteStale(sql, [['webhook', bot, drop ? version : 0]]);
    const differed = differs(was);
    // A call with a version comes from deliveries; a call without one from the bot.
    const actor = { type: only === null ? 'bot' : 'service' } as const;
    if (differed) await noteAudit(sql, bot, actor, next.url_box === null ? 'webhook_deleted' : 'webhook_set');
    if (only !== null && lives.owner !== null)
      await tellPerson(sql, lives.owner, { kind: 'webhook_removed', bot, username: lives.username });
    return { differed, version, setVersion: set_version };
  });
}

export async function loadWebhook(sql: Sql, bot: number): Promise<WebhookRow | null> {
  const [row] = await sql.query<WebhookRow>(`select ${columns} from webhooks where bot_id = $1`, [bot]);
  return row ?? null;
}

/** A version above all versions given out before. */
export const nextVersion = async (sql: Sql): Promise<number> =>
  (await one<{ version: number }>(sql, "select nextval('control_versions') as version")).version;

/** The webhook row of a bot that `owner` owns now. */
export async function loadOwnWebhook(sql: Sql, bot: number, owner: number): Promise<WebhookRow | null> {
  const [row] = await sql.query<WebhookRow>(
    `select ${columns} from webhooks
      where bot_id = $1 and exists (select from bots b where b.id = bot_id and b.owner_id = $2)`,
    [bot, owner],
  );
  return row ?? null;
}

/**
 * Creates a signing secret for a bot that has none. Returns the bot's row, and whether the secret is new. Null unless
 * `owner` owns the bot.
 */
export function ensureWebhook(
  db: Database,
  bot: number,
  owner: number,
  signing: Buffer,
): Promise<{ readonly row: WebhookRow; readonly made: boolean } | null> {
  return db.transaction(async (sql) => {
    const [owned] = await sql.query('select 1 from bots where id = $1 and owner_id = $2 for share', [
      bot,
      owner,
    ]);
    if (owned === undefined) return null;
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
 * Replaces the signing secret of a bot if `owner` owns it now; the former one signs until `overlapMs` later. Returns
 * false otherwise.
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
    await noteAudit(sql, bot, { type: 'user', id: owner }, 'signing_secret_rotated');
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

/** Bots with a webhook, with ids greater than `after`, ordered by id. */
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

/** The kinds of updates that a bot asked for, packed; null for the default. */
export async function loadMask(sql: Sql, bot: number): Promise<Buffer | null> {
  const [row] = await sql.query<{ record: Buffer | null }>(
    'select record from bot_update_masks where bot_id = $1',
    [bot],
  );
  return row?.record ?? null;
}

/** Webhook settings that the queue of a bot has applied. */
export interface QueueSettings {
  /** version of the webhook; null while the bot polls */
  readonly hook: number | null;
  readonly set: number | null;
}

export async function loadQueueSettings(sql: Sql, bot: number): Promise<QueueSettings> {
  return one<QueueSettings>(
    sql,
    `select w.version as hook, w.set_version as set
       from (select $1::bigint as bot_id) as asked
       left join webhooks w on w.bot_id = asked.bot_id and w.url_box is not null
         and not exists (select from bots b where b.id = w.bot_id and b.suspended_at is not null)`,
    [bot],
  );
}
