/** Notices that the management bot sends to people: stored with the change that they report, sent by a sweep. */
import type { Database, Sql } from '../sql.js';

interface OfBot {
  readonly bot: number;
  /** username of the bot at the time of the change */
  readonly username: string;
}

/** A notice to a person. It must never contain a token. */
export type Notice =
  /** A token of the bot was found in public and no longer works; `where` is an address or '' */
  | ({ readonly kind: 'leak_found'; readonly where: string } & OfBot)
  /** A token of the person, named `name`, was found in public and no longer works. */
  | { readonly kind: 'user_token_leaked'; readonly name: string; readonly where: string }
  /** `since` is Unix time in seconds; `error` as `getWebhookInfo` shows it */
  | ({ readonly kind: 'webhook_failing'; readonly since: number; readonly error: string } & OfBot)
  /** The webhook was removed, because the receiver answered for 23 hours that it is gone. */
  | ({ readonly kind: 'webhook_removed' } & OfBot)
  /** `from` is the former owner's username, or '' */
  | ({ readonly kind: 'transferred_to_you'; readonly from: string } & OfBot)
  /** The bot is offered to the person, who gets it on accepting. */
  | ({ readonly kind: 'transfer_offered'; readonly from: string } & OfBot)
  /** Outcome of an offer that the person made; `to` is the username of the person who was offered the bot, or '' */
  | ({ readonly kind: 'transfer_accepted' | 'transfer_declined'; readonly to: string } & OfBot);

/** Stores a notice to a person in the caller's transaction: it is sent if and only if that commits. */
export async function tellPerson(sql: Sql, user: number, notice: Notice): Promise<void> {
  await sql.query('insert into notices (user_id, notice) values ($1, $2)', [user, JSON.stringify(notice)]);
}

export interface NoticeRow {
  readonly id: number;
  readonly user_id: number;
  readonly notice: Notice;
  readonly tries: number;
}

/** Outcome of a notice: sent, not sent for a lasting reason, or to be sent again later. */
export type Told =
  | { readonly how: 'sent' }
  | { readonly how: 'refused'; readonly why: string }
  | { readonly how: 'later'; readonly delayMs: number };

/**
 * Takes due notices, at most `limit`, the older ones of a person first, and records the outcome of each. Skips rows
 * that another sweep is processing. The rows of a process that died are taken again. Returns how many there were.
 */
export async function takeNotices(
  db: Database,
  limit: number,
  send: (row: NoticeRow) => Promise<Told>,
): Promise<number> {
  // Usually no notice is due; a transaction would need several round trips to find that out.
  const [some] = await db.query(
    'select 1 from notices where told_at is null and next_at <= now() limit 1',
    [],
  );
  if (some === undefined) return 0;
  return db.transaction(async (sql) => {
    const rows = await sql.query<NoticeRow>(
      `select id, user_id, notice, tries from notices
        where told_at is null and next_at <= now() order by id limit $1 for update skip locked`,
      [limit],
    );
    const byUser = new Map<number, NoticeRow[]>();
    for (const row of rows) byUser.set(row.user_id, [...(byUser.get(row.user_id) ?? []), row]);
    const told = await Promise.all(
      [...byUser.values()].map(async (own) => {
        const each: Array<readonly [id: number, told: Told]> = [];
        for (const row of own) {
          // Later notices of the same person must not overtake this one.
          const last = each.at(-1)?.[1];
          each.push([row.id, last?.how === 'later' ? last : await send(row)]);
        }
        return each;
      }),
    );
    const all = told.flat();
    const done = all.filter(([, { how }]) => how !== 'later');
    const later = all.filter(([, { how }]) => how === 'later');
    await sql.query(
      `update notices set told_at = now(), refused = nullif(given.refused, '')
         from unnest($1::bigint[], $2::text[]) as given (id, refused) where notices.id = given.id`,
      [done.map(([id]) => id), done.map(([, one]) => (one.how === 'refused' ? one.why : ''))],
    );
    await sql.query(
      `update notices set tries = tries + 1, next_at = now() + given.delay * interval '1 millisecond'
         from unnest($1::bigint[], $2::int[]) as given (id, delay) where notices.id = given.id`,
      [later.map(([id]) => id), later.map(([, one]) => (one.how === 'later' ? one.delayMs : 0))],
    );
    return rows.length;
  });
}
