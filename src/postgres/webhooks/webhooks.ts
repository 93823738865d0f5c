/** SQL statements for the webhooks of bots. */
import { fail } from '../../errors.js';
import type { RetryPolicy } from '../../rules/retry_policy.js';
import { noteAudit } from '../bots/audit.js';
import { notifyPerson } from '../bots/notices.js';
import { type Database, fragment, noteStale, type Sql } from '../sql.js';

export interface WebhookColumns {
  /** The encrypted URL. If null, the bot has no webhook. */
  readonly url_box: Buffer | null;
  /** The encrypted secret that is sent with each request. */
  readonly secret_box: Buffer | null;
  /** The PEM certificate to trust when connecting to the receiver. */
  readonly certificate: string | null;
  readonly max_connections: number;
  readonly ip_address: string | null;
  /** The retry policy. Null means the usual schedule. */
  readonly retry: RetryPolicy | null;
}

export interface WebhookRow extends WebhookColumns {
  /** The encrypted routes. Null if the bot never had routes. */
  readonly routes_box: Buffer | null;
  readonly signing_box: Buffer;
  /** The encrypted former signing secret, which also signs requests until `former_until`. */
  readonly former_signing_box: Buffer | null;
  /** The Unix time in ms until which the former signing secret also signs requests. */
  readonly former_until: number | null;
  readonly version: number;
  /**
   * The version that the last `setWebhook` or `deleteWebhook` call gave to the webhook. A new signing secret does not
   * change this version.
   */
  readonly set_version: number;
  /** Whether the bot is suspended, which pauses its deliveries. */
  readonly suspended: boolean;
  /**
   * The version that decides which of two copies in Redis is newer. It equals `version`, or is greater if the secrets
   * were encrypted again after the last change.
   */
  readonly copy_version: number;
}

const columns =
  fragment(`url_box, secret_box, certificate, max_connections, ip_address, retry, routes_box, signing_box,
  former_signing_box, (extract(epoch from former_until) * 1000)::bigint as former_until, version, set_version,
  exists (select from bots b where b.id = bot_id and b.suspended_at is not null) as suspended,
  greatest(version, sealed_version) as copy_version`);

/** What a call of `setWebhook` changed, or null if it changed nothing. */
export interface WebhookChange {
  readonly differed: boolean;
  readonly version: number;
  readonly setVersion: number;
}

/**
 * Locks the bot, so that concurrent calls for one bot wait for each other even if the bot has no webhook row yet.
 * `only` is a version of the webhook, or null for any version. Returns null if the webhook no longer has this version.
 */
async function lockWebhook(sql: Sql, bot: number, only: number | null) {
  const lives = await sql.first<{ owner: number | null; username: string }>`
    select owner_id as owner, username from bots
    where id = ${bot} and deleted_at is null and suspended_at is null for update`;
  // The bot must have been deleted or suspended during the call, because its token was valid when the call began.
  if (lives === null) return only === null ? fail('unauthorized') : null;
  const was = await loadWebhook(sql, bot);
  return only === null || was?.version === only ? { ...lives, was } : null;
}

/** Stores the row of a webhook. Changes `set_version` (the version of the last `setWebhook`) only if `sets` is true. */
const saveWebhook = (sql: Sql, bot: number, next: WebhookColumns, signing: Buffer, sets: boolean) =>
  sql.one<Pick<WebhookRow, 'version' | 'set_version'>>`
    insert into webhooks as w
      (bot_id, url_box, secret_box, certificate, max_connections, ip_address, retry, signing_box, version, set_version)
    select ${bot}, ${next.url_box}, ${next.secret_box}, ${next.certificate}, ${next.max_connections},
      ${next.ip_address}, ${next.retry && JSON.stringify(next.retry)}::jsonb, ${signing}, v, case when ${sets} then v else 0 end
      from (select nextval('control_versions') as v) as new
    on conflict (bot_id) do update set url_box = excluded.url_box, secret_box = excluded.secret_box,
      certificate = excluded.certificate, max_connections = excluded.max_connections,
      ip_address = excluded.ip_address, retry = excluded.retry, version = excluded.version,
      set_version = case when ${sets} then excluded.version else w.set_version end,
      set_at = case when ${sets} then now() else w.set_at end,
      failing_since = case when ${sets} then null else w.failing_since end,
      failing_told_at = case when ${sets} then null else w.failing_told_at end
    returning version, set_version`;

/**
 * Sets the webhook of a bot, or removes it if the URL is null. If the bot has no signing secret yet, stores `signing`,
 * which is encrypted. With `drop`, the bot's queue drops its pending updates when it applies the change. Returns the
 * new version, and the result of `differs` for the former row.
 *
 * A delivery that ends a webhook passes the webhook's version as `only`. The owner then gets a notice. If the row has
 * another version by now, or if there is nothing to remove or to drop, changes nothing and returns null. Error:
 * `unauthorized` for a bot that was deleted or suspended during the call.
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
 * Creates a signing secret if the bot has none. Returns the bot's webhook row, and whether the secret is new. Returns
 * null if `owner` does not own the bot.
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
 * Replaces a bot's signing secret. The former secret stays valid for another `overlapMs`. Returns false if `owner` does
 * not own the bot now.
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

/** Lists the bots that have a webhook, or have ever had a route. */
export const listWebhooks = (sql: Sql, after: number, limit: number) =>
  sql.rows<{ readonly id: number; readonly username: string }>`
    select b.id, b.username from webhooks w join bots b on b.id = w.bot_id
    where (w.url_box is not null or w.routes_box is not null) and w.bot_id > ${after} order by w.bot_id limit ${limit}`;

/** Loads the requested update kinds in packed form, or null for the default. */
export const loadMask = async (sql: Sql, bot: number) =>
  (await sql.firstValue<Buffer | null>`select record from bot_update_masks where bot_id = ${bot}`) ?? null;

/**
 * Changes the routes of a bot. `change` gets the current box and the new version. It returns the next box and the slot
 * of the changed route, or null to change nothing. `change` may throw. If the bot has no signing secret yet, stores
 * `signing`, which is encrypted. Returns whether anything changed.
 *
 * A delivery that ends a route passes the version of the bot's settings as `only`. The owner then gets a notice. If the
 * webhook or a route has changed since, changes nothing. Error: `unauthorized` for a bot that was deleted or suspended
 * during the call.
 */
export function changeRoutes(
  db: Database,
  bot: number,
  ask: {
    readonly signing: Buffer;
    readonly event: 'webhook_route_set' | 'webhook_route_deleted';
    readonly name: string;
    readonly only: number | null;
    readonly change: (
      box: Buffer | null,
      version: number,
    ) => { readonly box: Buffer; readonly slot: number } | null;
  },
): Promise<boolean> {
  const { signing, event, name, only, change } = ask;
  return db.transaction(async (sql) => {
    const locked = await lockWebhook(sql, bot, only);
    if (locked === null) return false;
    const version = await nextVersion(sql);
    const { was, owner, username } = locked;
    const changed = change(was?.routes_box ?? null, version);
    if (changed === null) return false;
    const { box, slot } = changed;
    await sql.run`
      insert into webhooks (bot_id, signing_box, routes_box, version) values (${bot}, ${signing}, ${box}, ${version})
      on conflict (bot_id) do update set routes_box = excluded.routes_box, version = excluded.version`;
    await sql.run`delete from failing_routes where bot_id = ${bot} and slot = ${slot}`;
    await noteStale(sql, [['webhook', bot]]);
    await noteAudit(sql, bot, { type: only === null ? 'bot' : 'service' }, event, { route: name });
    if (only !== null && owner !== null)
      await notifyPerson(sql, owner, { kind: 'webhook_route_removed', bot, username, route: name });
    return true;
  });
}

export interface QueueSettings {
  /** The version of the webhook, or null if the bot polls. */
  readonly hook: number | null;
  readonly set: number | null;
  readonly gone: boolean;
  /** The encrypted routes of the bot, and the version of the webhook row that contains them. */
  readonly routes_box: Buffer | null;
  readonly version: number | null;
  readonly suspended: boolean;
}

export const loadQueueSettings = (sql: Sql, bot: number) => sql.one<QueueSettings>`
  select case when w.url_box is not null and not suspended then w.version end as hook,
    case when w.url_box is not null and not suspended then w.set_version end as set,
    gone, w.routes_box, w.version, suspended
  from (select ${bot}::bigint as bot_id,
    exists (select from bots b where b.id = ${bot} and b.deleted_at is not null) as gone,
    exists (select from bots b where b.id = ${bot} and b.suspended_at is not null) as suspended) as asked
  left join webhooks w on w.bot_id = asked.bot_id`;
