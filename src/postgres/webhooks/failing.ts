/** Records when a webhook began to fail, and stores the notice to the bot's owner (behaviour §10). */

import { type Notice, notifyPerson } from '../bots/notices.js';
import { postgresLimits as limits } from '../limits.js';
import { type Database, type Sql, seconds } from '../sql.js';

export interface Failure {
  readonly bot: number;
  /** The time of the bot's first failure in this batch, as Unix time in ms. */
  readonly at: number;
  readonly error: string;
}

/**
 * Records the outcome of deliveries. Call this before the attempts are stored. A repeated call changes nothing. If a
 * webhook has accepted nothing for limits.webhook_failing_ms, its owner gets one notice. The next notice is possible
 * only after a delivery has succeeded or the webhook was set again.
 */
export async function noteFailing(
  db: Database,
  delivered: readonly number[],
  failed: readonly Failure[],
): Promise<void> {
  // Checks for failing webhooks before beginning a transaction. Usually there are none, and a transaction takes several
  // round trips.
  const mended =
    delivered.length === 0
      ? []
      : await db.column<number>`
        select bot_id from webhooks where bot_id = any(${delivered}) and failing_since is not null`;
  if (mended.length === 0 && failed.length === 0) return;
  await db.transaction((sql) => note(sql, mended, failed));
}

async function note(sql: Sql, delivered: readonly number[], failed: readonly Failure[]): Promise<void> {
  if (delivered.length > 0)
    await sql.run`
      update webhooks set failing_since = null, failing_told_at = null
      where bot_id = any(${delivered}) and failing_since is not null`;
  if (failed.length === 0) return;
  const bots = failed.map(({ bot }) => bot);
  // Ignores failures from before the webhook was set, because they belong to the previous webhook.
  await sql.run`
    update webhooks w set failing_since = greatest(f.at, w.set_at)
     from unnest(${bots}::bigint[], ${failed.map(({ at }) => new Date(at))}::timestamptz[]) as f (bot_id, at)
    where w.bot_id = f.bot_id and w.failing_since is null and w.url_box is not null`;
  type Failing = Omit<Extract<Notice, { kind: 'webhook_failing' }>, 'kind'>;
  const long = await sql.rows<Failing & { readonly owner: number | null }>`
    update webhooks w set failing_told_at = now()
     from unnest(${bots}::bigint[], ${failed.map(({ error }) => error)}::text[]) as f (bot_id, error)
     join bots b on b.id = f.bot_id
    where w.bot_id = f.bot_id and w.failing_told_at is null and w.url_box is not null
      and w.failing_since <= now() - ${limits.webhook_failing_ms}::bigint * interval '1 millisecond'
    returning b.id as bot, b.username, b.owner_id as owner, f.error,
      ${seconds('w.failing_since')} as since`;
  for (const { owner, ...notice } of long)
    if (owner !== null) await notifyPerson(sql, owner, { kind: 'webhook_failing', ...notice });
}

export interface QueueOfRoute {
  readonly bot: number;
  readonly slot: number;
}

/**
 * Returns the name of the route in this slot. `box` contains the encrypted routes. Returns undefined if the route was
 * deleted or the routes cannot be decrypted. Must not throw.
 */
export type RouteNames = (bot: number, box: Buffer | null, slot: number) => string | undefined;

/**
 * Records the outcome of deliveries to webhook routes, as `noteFailing` does for webhooks. The time
 * limits.webhook_failing_ms starts when the first failure is recorded.
 */
export async function noteFailingRoutes(
  db: Database,
  delivered: readonly QueueOfRoute[],
  failed: ReadonlyArray<QueueOfRoute & { readonly error: string }>,
  nameOf: RouteNames,
): Promise<void> {
  const mended =
    delivered.length === 0
      ? []
      : await db.rows<QueueOfRoute>`
        select bot_id as bot, slot from failing_routes
        where (bot_id, slot) in (select * from unnest(${botsOf(delivered)}::bigint[], ${slotsOf(delivered)}::smallint[]))`;
  if (mended.length === 0 && failed.length === 0) return;
  await db.transaction(async (sql) => {
    if (mended.length > 0) await dropRows(sql, mended);
    if (failed.length > 0) await noteRoutes(sql, failed, nameOf);
  });
}

const botsOf = (routes: readonly QueueOfRoute[]) => routes.map(({ bot }) => bot);
const slotsOf = (routes: readonly QueueOfRoute[]) => routes.map(({ slot }) => slot);

const dropRows = (sql: Sql, routes: readonly QueueOfRoute[]) => sql.run`
  delete from failing_routes where (bot_id, slot) in
    (select * from unnest(${botsOf(routes)}::bigint[], ${slotsOf(routes)}::smallint[]))`;

/**
 * Removes rows that were just added for deleted routes. Nothing else would remove these rows, because a deleted route
 * has no further deliveries. The lock makes this transaction wait for changes of the bot's routes.
 */
async function dropDeleted(sql: Sql, begun: readonly QueueOfRoute[], nameOf: RouteNames): Promise<void> {
  const found = await sql.rows<{ readonly bot: number; readonly box: Buffer | null }>`
    select bot_id as bot, routes_box as box from webhooks where bot_id = any(${botsOf(begun)}::bigint[])
    order by bot_id for share`;
  const boxes = new Map(found.map(({ bot, box }) => [bot, box]));
  const deleted = begun.filter(({ bot, slot }) => nameOf(bot, boxes.get(bot) ?? null, slot) === undefined);
  if (deleted.length > 0) await dropRows(sql, deleted);
}

async function noteRoutes(
  sql: Sql,
  failed: ReadonlyArray<QueueOfRoute & { readonly error: string }>,
  nameOf: RouteNames,
): Promise<void> {
  const begun = await sql.rows<QueueOfRoute>`
    insert into failing_routes (bot_id, slot)
    select bot_id, slot from unnest(${botsOf(failed)}::bigint[], ${slotsOf(failed)}::smallint[]) as f (bot_id, slot)
      where exists (select from bots b where b.id = f.bot_id and b.deleted_at is null)
    on conflict do nothing returning bot_id as bot, slot`;
  if (begun.length > 0) await dropDeleted(sql, begun, nameOf);
  const long = await sql.rows<{
    readonly bot: number;
    readonly username: string;
    readonly owner: number | null;
    readonly slot: number;
    readonly error: string;
    readonly since: number;
    readonly box: Buffer | null;
  }>`
    update failing_routes r set told_at = now()
     from unnest(${botsOf(failed)}::bigint[], ${slotsOf(failed)}::smallint[],
        ${failed.map(({ error }) => error)}::text[]) as f (bot_id, slot, error)
     join bots b on b.id = f.bot_id join webhooks w on w.bot_id = f.bot_id
    where r.bot_id = f.bot_id and r.slot = f.slot and r.told_at is null
      and r.since <= now() - ${limits.webhook_failing_ms}::bigint * interval '1 millisecond'
    returning b.id as bot, b.username, b.owner_id as owner, r.slot, f.error, ${seconds('r.since')} as since,
      w.routes_box as box`;
  for (const { owner, slot, box, ...notice } of long) {
    const route = nameOf(notice.bot, box, slot);
    if (owner !== null && route !== undefined)
      await notifyPerson(sql, owner, { kind: 'webhook_route_failing', route, ...notice });
  }
}
