/**
 * Holds the notices that the management bot sends to people. A notice is stored in the transaction of the change that
 * it reports. A sweep sends it later.
 */
import type { Database, Sql } from '../sql.js';

interface OfBot {
  readonly bot: number;
  readonly username: string;
}

/** A notice must never contain a token. */
export type Notice =
  /** The person has just signed up. The notice opens the chat with the management bot. */
  | { readonly kind: 'welcome' }
  /** A token of the bot was found in public and no longer works. `where` is an address or ''. */
  | ({ readonly kind: 'leak_found'; readonly where: string } & OfBot)
  /** A token of the person, named `name`, was found in public and no longer works. */
  | { readonly kind: 'user_token_leaked'; readonly name: string; readonly where: string }
  /**
   * The webhook has been failing since `since` (Unix time in seconds). `error` is the text that `getWebhookInfo` shows.
   */
  | ({ readonly kind: 'webhook_failing'; readonly since: number; readonly error: string } & OfBot)
  /** The webhook was removed because the receiver had answered for 23 hours that the URL no longer exists. */
  | ({ readonly kind: 'webhook_removed' } & OfBot)
  /**
   * This webhook route has been failing since `since` (Unix time in seconds). `error` is the text that
   * `getWebhookRoutes` shows.
   */
  | ({
      readonly kind: 'webhook_route_failing';
      readonly route: string;
      readonly since: number;
      readonly error: string;
    } & OfBot)
  | ({ readonly kind: 'webhook_route_removed'; readonly route: string } & OfBot)
  /** The bot was transferred to the person. `from` is the former owner's username, or ''. */
  | ({ readonly kind: 'transferred_to_you'; readonly from: string } & OfBot)
  /** Somebody offered the bot to the person. By accepting the offer, the person becomes the bot's owner. */
  | ({ readonly kind: 'transfer_offered'; readonly from: string } & OfBot)
  /** The outcome of an offer that the person made. `to` is the username of the recipient, or ''. */
  | ({ readonly kind: 'transfer_accepted' | 'transfer_declined'; readonly to: string } & OfBot);

/** Stores a notice for a person in the caller's transaction. The notice is sent only if the transaction commits. */
export const notifyPerson = (sql: Sql, user: number, notice: Notice) => sql.run`
  insert into notices (user_id, notice) values (${user}, ${JSON.stringify(notice)})`;

/** Lets the management bot welcome a new person. Call this in the transaction that creates the person. */
export const welcome = (sql: Sql, user: number) => notifyPerson(sql, user, { kind: 'welcome' });

export interface NoticeRow {
  readonly id: number;
  readonly user_id: number;
  readonly notice: Notice;
  readonly tries: number;
}

export type NoticeOutcome =
  | { readonly how: 'sent' }
  | { readonly how: 'refused'; readonly why: string }
  | { readonly how: 'later'; readonly delayMs: number };

/**
 * Claims at most `limit` due notices for `claimMs`, sends them, and records the outcomes. A person's older notices come
 * first. Skips notices that another sweep has claimed. If a process dies, its notices are due again when the claim
 * ends. Holds no locks while it sends, because sending may lock the person. Returns how many notices this call claimed.
 */
export async function takeNotices(
  db: Database,
  limit: number,
  claimMs: number,
  send: (row: NoticeRow) => Promise<NoticeOutcome>,
): Promise<number> {
  const rows = await db.rows<NoticeRow>`
    update notices set next_at = now() + ${claimMs} * interval '1 millisecond' where id in (
      select id from notices where told_at is null and next_at <= now()
      order by id limit ${limit} for update skip locked)
    returning id, user_id, notice, tries`;
  if (rows.length === 0) return 0;
  const byUser = new Map<number, NoticeRow[]>();
  for (const row of rows.sort((a, b) => a.id - b.id))
    byUser.set(row.user_id, [...(byUser.get(row.user_id) ?? []), row]);
  const handled = await Promise.all(
    [...byUser.values()].map(async (own) => {
      const each: Array<readonly [id: number, outcome: NoticeOutcome]> = [];
      for (const row of own) {
        // If an earlier notice to the same person was postponed, postpones this notice too, so that the person gets the
        // notices in order.
        const last = each.at(-1)?.[1];
        each.push([row.id, last?.how === 'later' ? last : await send(row)]);
      }
      return each;
    }),
  );
  const all = handled.flat();
  const done = all.filter(([, { how }]) => how !== 'later');
  const later = all.filter(([, { how }]) => how === 'later');
  await db.run`
    update notices set told_at = now(), refused = nullif(given.refused, '')
    from unnest(${done.map(([id]) => id)}::bigint[],
      ${done.map(([, one]) => (one.how === 'refused' ? one.why : ''))}::text[]) as given (id, refused)
    where notices.id = given.id`;
  await db.run`
    update notices set tries = tries + 1, next_at = now() + given.delay * interval '1 millisecond'
    from unnest(${later.map(([id]) => id)}::bigint[],
      ${later.map(([, one]) => (one.how === 'later' ? one.delayMs : 0))}::int[]) as given (id, delay)
    where notices.id = given.id`;
  return rows.length;
}
