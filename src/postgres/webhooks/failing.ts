/** Statements on failing webhooks: since when they fail, and the notices to their owners (behaviour §10). */
import { limits } from '../../limits.js';
import { tellPerson } from '../bots/notices.js';
import type { Database, Sql } from '../sql.js';

/** A bot whose deliveries have failed without a success in between. */
export interface Failure {
  readonly bot: number;
  /** Unix time in ms of the first of these failures */
  readonly at: number;
  /** the last error, as `getWebhookInfo` shows it */
  readonly error: string;
}

/**
 * Records the outcome of deliveries before the attempts are stored; repeating it changes nothing. The owner of a
 * webhook that has accepted nothing for limits.webhook_failing_ms gets one notice until a delivery succeeds or the
 * webhook is set again.
 */
export async function noteFailing(
  db: Database,
  delivered: readonly number[],
  failed: readonly Failure[],
): Promise<void> {
  // Usually no webhook fails; a transaction would need several round trips to find that out.
  const failing =
    delivered.length === 0
      ? []
      : await db.query<{ readonly bot: number }>(
          'select bot_id as bot from webhooks where bot_id = any($1) and failing_since is not null',
          [delivered],
        );
  if (failing.length === 0 && failed.length === 0) return;
  const mended = failing.map(({ bot }) => bot);
  await db.transaction((sql) => note(sql, mended, failed));
}

async function note(sql: Sql, delivered: readonly number[], failed: readonly Failure[]): Promise<void> {
  if (delivered.length > 0) {
    await sql.query(
      `update webhooks set failing_since = null, failing_told_at = null
        where bot_id = any($1) and failing_since is not null`,
      [delivered],
    );
  }
  if (failed.length === 0) return;
  const bots = failed.map(({ bot }) => bot);
  // Failures from before the webhook was set belong to the former webhook.
  await sql.query(
    `update webhooks w set failing_since = greatest(f.at, w.set_at)
       from unnest($1::bigint[], $2::timestamptz[]) as f (bot_id, at)
      where w.bot_id = f.bot_id and w.failing_since is null and w.url_box is not null`,
    [bots, failed.map(({ at }) => new Date(at))],
  );
  const long = await sql.query<{
    readonly bot: number;
    readonly username: string;
    readonly owner: number | null;
    readonly since: number;
    readonly error: string;
  }>(
    `update webhooks w set failing_told_at = now()
       from unnest($1::bigint[], $2::text[]) as f (bot_id, error) join bots b on b.id = f.bot_id
      where w.bot_id = f.bot_id and w.failing_told_at is null and w.url_box is not null
        and w.failing_since <= now() - $3::bigint * interval '1 millisecond'
      returning b.id as bot, b.username, b.owner_id as owner, f.error,
        extract(epoch from w.failing_since)::bigint as since`,
    [bots, failed.map(({ error }) => error), limits.webhook_failing_ms],
  );
  for (const { owner, ...told } of long)
    if (owner !== null) await tellPerson(sql, owner, { kind: 'webhook_failing', ...told });
}
