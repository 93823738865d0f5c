/** Holds SQL statements for the webhooks of bots. */
import { fail } from '../../errors.js';
import { noteAudit } from '../bots/audit.js';
import { notifyPerson } from '../bots/notices.js';
import { type Database, fragment, noteStale, type Sql } from '../sql.js';

export interface WebhookColumns {
  /** The encrypted URL. Null removes the webhook. */
  readonly url_box: Buffer | null;
  /** The encrypted secret that is sent with each request. */
  readonly secret_box: Buffer | null;
  /** The PEM certificate to trust when connecting to the receiver. */
  readonly certificate: string | null;
  readonly max_connections: number;
  readonly ip_address: string | null;
}

export interface WebhookRow extends WebhookColumns {
  readonly signing_box: Buffer;
  /** The encrypted former signing secret, which also signs requests until `former_until`. */
  readonly former_signing_box: Buffer | null;
  /** Unix time in ms. */
  readonly former_until: number | null;
  readonly version: number;
  /** The version at the last `setWebhook` or `deleteWebhook` call. A new signing secret does not change it. */
  readonly set_version: number;
  /** Suspending a bot pauses its deliveries. */
  readonly suspended: boolean;
  /**
   * The version that orders copies in Redis. It equals `version`, or is greater after the secrets were encrypted again.
   */
  readonly copy_version: number;
}

const columns = fragment(`url_box, secret_box, certificate, max_connections, ip_address, signing_box,
  former_signing_box, (extract(epoch from former_until) * 1000)::bigint as former_until, version, set_version,
  exists (select from bots b where b.id = bot_id and b.suspended_at is not null) as suspended,
  greatest(version, sealed_version) as copy_version`);

/** What `setWebhook` changed, or null if nothing had to change. */
export interface WebhookChange {
  readonly differed: boolean;
  readonly version: number;
  readonly setVersion: number;
}

/**
 * Makes concurrent calls for one bot wait for each other, even if the bot has no webhook row yet. Returns null if
 * `only` is a version of the webhook that is no longer current.
 */
async function lockWebhook(sql: Sql, bot: number, only: number | null) {
  const lives = await sql.first<{ owner: number | null; username: string }>`
    select owner_id as owner, username from bots
    where id = ${bot} and deleted_at is null and suspended_at is null for update`;
  // Refuses a bot that was deleted in the meantime. Its token was valid when the call began, so the bot existed then.
  if (lives === null) return only === null ? fail('unauthorized') : null;
  const was = await loadWebhook(sql, bot);
  return only === null || was?.version === only ? { ...lives, was } : null;
}

/** Stores a row. If `sets` is false, the webhook counts as set by the previous call. */
const saveWebhook = (sql: Sql, bot: number, next: WebhookColumns, signing: Buffer, sets: boolean) =>
  sql.one<Pick<WebhookRow, 'version' | 'set_version'>>`
    insert into webhooks as w
      (bot_id, url_box, secret_box, certificate, max_connections, ip_address, signing_box, version, set_version)
    select ${bot}, ${next.url_box}, ${next.secret_box}, ${next.certificate}, ${next.max_connections},
      ${next.ip_address}, ${signing}, v, case when ${sets} then v else 0 end
      from (select nextval('control_versions') as v) as new
    on conflict (bot_id) do update set url_box = excluded.url_box, secret_box = excluded.secret_box,
      certificate = excluded.certificate, max_connections = excluded.max_connections,
      ip_address = excluded.ip_address, version = excluded.version,
      set_version = case when ${sets} then excluded.version else w.set_version end,
      set_at = case when ${sets} then now() else w.set_at end,
      failing_since = case when ${sets} then null else w.failing_since end,
      failing_told_at = case when ${sets} then null else w.failing_told_at end
    returning version, set_version`;

/**
 * Sets the webhook of a bot. A null URL removes the webhook. If the bot has no signing secret yet, stores `signing`,
 * which is encrypted. With `drop`, the refresh of the bot's queue drops pending updates. Returns the new version, and
 * the result of `differs` for the former row. A delivery that ends a webhook passes the webhook's version as `only`.
 * Such a call notifies the owner. It changes nothing and returns null if the row has another version, or if there is
 * nothing to remove or to drop. Error: `unauthorized` for a bot that was deleted or suspended in the meantime.
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
    const locked = await lockWebhook(sql, bot, only);
    if (locked === null) return null;
    const { was, owner, username } = locked;
    const sets = next.url_box !== null || (was !== null && was.url_box !== null);
    if (!sets && !drop) return null;
    const { version, set_version } = await saveWebhook(sql, bot, next, was?.signing_box ?? signing, sets);
    await noteStale(sql, [['webhook', bot, drop ? version : 0]]);
    const differed = differs(was);
    const actor = { type: only === null ? 'bot' : 'service' } as const;
    if (differed) await noteAudit(sql, bot, actor, next.url_box === null ? 'webhook_deleted' : 'webhook_set');
    if (only !== null && owner !== null)
      await notifyPerson(sql, owner, { kind: 'webhook_removed', bot, username });
    return { differed, version, setVersion: set_version };
  });
}

export const loadWebhook = (sql: Sql, bot: number) => sql.first<WebhookRow>`
  select ${columns} from webhooks where bot_id = ${bot}`;

export const nextVersion = (sql: Sql) => sql.value<number>`select nextval('control_versions')`;

export const loadOwnWebhook = (sql: Sql, bot: number, owner: number) => sql.first<WebhookRow>`
  select ${columns} from webhooks
  where bot_id = ${bot} and exists (select from bots b where b.id = bot_id and b.owner_id = ${owner})`;

/**
 * Creates a signing secret for a bot that has none. Returns the bot's row and whether the secret is new. Returns null
 * unless `owner` owns the bot.
 */
export function ensureWebhook(
  db: Database,
  bot: number,
  owner: number,
  signing: Buffer,
): Promise<{ readonly row: WebhookRow; readonly made: boolean } | null> {
  return db.transaction(async (sql) => {
    const owned = await sql.some`select 1 from bots where id = ${bot} and owner_id = ${owner} for share`;
    if (!owned) return null;
    const made = await sql.some`
      insert into webhooks (bot_id, signing_box) values (${bot}, ${signing}) on conflict do nothing returning 1`;
    const row = await sql.one<WebhookRow>`select ${columns} from webhooks where bot_id = ${bot}`;
    if (made) await noteStale(sql, [['webhook', bot]]);
    return { row, made };
  });
}

/**
 * Replaces the signing secret of a bot. Returns false unless `owner` owns the bot now. The former secret stays valid
 * for another `overlapMs`.
 */
export function rotateSigning(
  db: Database,
  bot: number,
  owner: number,
  signing: Buffer,
  overlapMs: number,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    const owned = await sql.some`select 1 from bots where id = ${bot} and owner_id = ${owner} for update`;
    if (!owned) return false;
    await noteAudit(sql, bot, { type: 'user', id: owner }, 'signing_secret_rotated');
    await noteStale(sql, [['webhook', bot]]);
    await sql.run`
      insert into webhooks as w (bot_id, signing_box) values (${bot}, ${signing})
      on conflict (bot_id) do update set former_signing_box = w.signing_box, 
        signing_box = excluded.signing_box, former_until = now() + ${overlapMs}::bigint * interval '1 millisecond',
        version = nextval('control_versions')`;
    return true;
  });
}

export const listWebhooks = (sql: Sql, after: number, limit: number) =>
  sql.rows<{ readonly id: number; readonly username: string }>`
    select b.id, b.username from webhooks w join bots b on b.id = w.bot_id
    where w.url_box is not null and w.bot_id > ${after} order by w.bot_id limit ${limit}`;

/** Loads the requested update kinds in packed form, or null for the default. */
export const loadMask = async (sql: Sql, bot: number) =>
  (await sql.firstValue<Buffer | null>`select record from bot_update_masks where bot_id = ${bot}`) ?? null;

export interface QueueSettings {
  /** The version of the webhook, or null for a bot that polls. */
  readonly hook: number | null;
  readonly set: number | null;
  /** Whether the bot was deleted. */
  readonly gone: boolean;
}

export const loadQueueSettings = (sql: Sql, bot: number) => sql.one<QueueSettings>`
  select w.version as hook, w.set_version as set,
    exists (select from bots b where b.id = asked.bot_id and b.deleted_at is not null) as gone
  from (select ${bot}::bigint as bot_id) as asked
  left join webhooks w on w.bot_id = asked.bot_id and w.url_box is not null
    and not exists (select from bots b where b.id = w.bot_id and b.suspended_at is not null)`;
