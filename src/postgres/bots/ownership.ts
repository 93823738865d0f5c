/** SQL statements that transfer or offer a bot to another person. */
import { fail } from '../../errors.js';
import { findName } from '../accounts/users.js';
import { type Database, noteStale, type Sql, seconds } from '../sql.js';
import { noteAudit } from './audit.js';
import { roomForBot, type StoredToken } from './bots.js';
import { notifyPerson } from './notices.js';

export interface NewCredentials {
  readonly token: StoredToken;
  /** The encrypted new signing secret of the webhook. The former secret stays valid for another `overlapMs`. */
  readonly signing: Buffer;
  readonly overlapMs: number;
  readonly botsMax?: number | undefined;
}

function checkOwner(present: number | null | undefined, owner: number): void {
  if (present === undefined || present === null) fail('bot_not_found');
  if (present !== owner) fail('not_bot_owner');
}

/**
 * Locks a bot, so that nobody else can change it until the transaction ends. Errors: `bot_not_found`, `not_bot_owner`.
 */
export async function lockOwned(sql: Sql, bot: number, owner: number): Promise<void> {
  checkOwner(
    await sql.firstValue<number | null>`select owner_id from bots where id = ${bot} for no key update`,
    owner,
  );
}

/**
 * Finds the recipient of a bot by username. `owner` is the present owner. Errors: `username_unknown`,
 * `username_not_person`, `transfer_to_self`, `recipient_suspended`.
 */
async function findRecipient(sql: Sql, owner: number, username: string): Promise<number> {
  const id = await findName(sql, username);
  if (id === null) return fail('username_unknown', { name: username });
  if (id === owner) return fail('transfer_to_self');
  const suspended = await sql.firstValue<boolean>`
    select suspended_at is not null from users where id = ${id}`;
  if (suspended === undefined) return fail('username_not_person', { name: username });
  if (suspended) fail('recipient_suspended');
  return id;
}

/**
 * Changes the owner of a bot. Locks the people before the bot, in the same order as the creation of a bot. Replaces the
 * secrets that the former owner has seen. The former token becomes invalid immediately. The former signing secret
 * expires later, as after a rotation.
 */
async function handOver(
  sql: Sql,
  bot: number,
  from: number,
  to: number,
  credentials: NewCredentials,
): Promise<void> {
  await roomForBot(sql, to, credentials.botsMax);
  await lockOwned(sql, bot, from);
  await sql.run`
    update bots set owner_id = ${to}, owned_since = now(), token_hmac = ${credentials.token.lookup},
      token_box = ${credentials.token.box}, version = nextval('control_versions'),
      write_version = nextval('control_versions')
    where id = ${bot}`;
  await sql.run`
    update webhooks set former_signing_box = signing_box, signing_box = ${credentials.signing},
      former_until = now() + ${credentials.overlapMs}::bigint * interval '1 millisecond',
      version = nextval('control_versions')
    where bot_id = ${bot}`;
  await sql.run`delete from bot_transfers where bot_id = ${bot}`;
  await noteAudit(sql, bot, { type: 'user', id: from }, 'transferred', { from, to });
  await noteStale(sql, [
    ['bot', bot],
    ['write_access', bot],
    ['webhook', bot],
  ]);
}

const namesOf = (sql: Sql, bot: number, person: number) =>
  sql.one<{ username: string; person: string }>`
    select b.username, coalesce(u.username, '') as person from bots b, users u
    where b.id = ${bot} and u.id = ${person}`;

async function notifyRecipient(
  sql: Sql,
  kind: 'transferred_to_you' | 'transfer_offered',
  bot: number,
  owner: number,
  to: number,
): Promise<void> {
  const { username, person: from } = await namesOf(sql, bot, owner);
  await notifyPerson(sql, to, { kind, bot, username, from });
}

/** Stores a notice that tells the person who offered the bot whether the offer was accepted. */
async function notifyOfferer(
  sql: Sql,
  kind: 'transfer_accepted' | 'transfer_declined',
  bot: number,
  owner: number,
  recipient: number,
): Promise<void> {
  const { username, person: to } = await namesOf(sql, bot, recipient);
  await notifyPerson(sql, owner, { kind, bot, username, to });
}

const ownCountAsRecipients = (error: unknown): never => {
  if ((error as { kind?: string }).kind === 'too_many_bots') fail('recipient_too_many_bots');
  throw error;
};

/**
 * Transfers the bot from `owner` to the person with this username. Errors: `bot_not_found`, `not_bot_owner`,
 * `recipient_too_many_bots`, and those of `findRecipient`.
 */
export function transferBot(
  db: Database,
  bot: number,
  owner: number,
  username: string,
  credentials: NewCredentials,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    // Checks the owner before the username, because only the owner may learn whether the username exists. `handOver`
    // checks the owner again after it has locked the recipient, because people must be locked before the bot.
    checkOwner(await sql.firstValue<number | null>`select owner_id from bots where id = ${bot}`, owner);
    const to = await findRecipient(sql, owner, username);
    await handOver(sql, bot, owner, to, credentials).catch(ownCountAsRecipients);
    await notifyRecipient(sql, 'transferred_to_you', bot, owner, to);
    return true;
  });
}

/**
 * Offers a bot to the person with this username. Replaces any earlier offer of the bot. Throws the errors of
 * `transferBot` except `recipient_too_many_bots`.
 */
export function offerBot(
  db: Database,
  bot: number,
  owner: number,
  username: string,
  ageMs: number,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    await lockOwned(sql, bot, owner);
    const to = await findRecipient(sql, owner, username);
    await sql.run`
      insert into bot_transfers (bot_id, from_id, to_id, expires_at)
      values (${bot}, ${owner}, ${to}, now() + ${ageMs}::bigint * interval '1 millisecond')
      on conflict (bot_id) do update set from_id = ${owner}, to_id = ${to}, created_at = now(),
        expires_at = excluded.expires_at`;
    await noteAudit(sql, bot, { type: 'user', id: owner }, 'transfer_offered', { to });
    await notifyRecipient(sql, 'transfer_offered', bot, owner, to);
    return true;
  });
}

/** Transfers an offered bot to the person who received the offer. Errors: `transfer_not_found`, `too_many_bots`. */
export function acceptBot(
  db: Database,
  bot: number,
  user: number,
  credentials: NewCredentials,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    // Locks and deletes the offer, so that a concurrent answer to the offer waits and then finds no offer.
    const from = await sql.firstValue<number>`
      select from_id from bot_transfers
      where bot_id = ${bot} and to_id = ${user} and expires_at > now() for update`;
    if (from === undefined) return fail('transfer_not_found');
    await handOver(sql, bot, from, user, credentials);
    await notifyOfferer(sql, 'transfer_accepted', bot, from, user);
    return true;
  });
}

/** Removes an offer on behalf of the person who made or received it. Error: `transfer_not_found`. */
export function withdrawOffer(db: Database, bot: number, user: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    const offer = await sql.first<{ to_id: number; from_id: number }>`
      delete from bot_transfers where bot_id = ${bot} and (to_id = ${user} or from_id = ${user})
        and expires_at > now() returning to_id, from_id`;
    if (offer === null) return fail('transfer_not_found');
    const event = offer.to_id === user ? 'transfer_declined' : 'transfer_withdrawn';
    await noteAudit(sql, bot, { type: 'user', id: user }, event);
    if (offer.to_id === user) await notifyOfferer(sql, 'transfer_declined', bot, offer.from_id, user);
    return true;
  });
}

export interface OfferRow {
  readonly bot_id: number;
  readonly bot_username: string;
  readonly from_id: number;
  readonly to_id: number;
  /** The Unix time in seconds at which the offer expires. */
  readonly expires_at: number;
}

export const loadOffers = (sql: Sql, user: number, after: number, limit: number) => sql.rows<OfferRow>`
  select t.bot_id, b.username as bot_username, t.from_id, t.to_id, ${seconds('t.expires_at')} as expires_at
   from bot_transfers t join bots b on b.id = t.bot_id and b.owner_id = t.from_id
  where (t.to_id = ${user} or t.from_id = ${user}) and t.expires_at > now() and t.bot_id > ${after}
  order by t.bot_id limit ${limit}`;
