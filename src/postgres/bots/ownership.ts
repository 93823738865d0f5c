/** Statements that transfer a bot to another person or offer it to them. */
import { fail } from '../../errors.js';
import { findName } from '../accounts/users.js';
import { type Database, noteStale, one, type Sql } from '../sql.js';
import { noteAudit } from './audit.js';
import { roomForBot, type StoredToken } from './bots.js';
import { tellPerson } from './notices.js';

/** New credentials of a transferred bot. */
export interface NewCredentials {
  readonly token: StoredToken;
  /** encrypted signing secret of the webhook; the former one stays in use until `overlapMs` later */
  readonly signing: Buffer;
  readonly overlapMs: number;
  /** maximum number of bots that an owner may have */
  readonly botsMax?: number | undefined;
}

function checkOwner(row: { readonly owner_id: number | null } | undefined, owner: number): void {
  if (row === undefined || row.owner_id === null) fail('bot_not_found');
  if (row.owner_id !== owner) fail('not_bot_owner');
}

/**
 * Locks a bot of `owner`, so that nobody else changes it until the transaction ends. Errors: `bot_not_found`,
 * `not_bot_owner`.
 */
export async function lockOwned(sql: Sql, bot: number, owner: number): Promise<void> {
  const [row] = await sql.query<{ owner_id: number | null }>(
    'select owner_id from bots where id = $1 for no key update',
    [bot],
  );
  checkOwner(row, owner);
}

/**
 * Finds the person by username who could get a bot of `owner`. Errors: `username_unknown`, `username_not_person`,
 * `transfer_to_self`, `recipient_suspended`.
 */
async function findRecipient(sql: Sql, owner: number, username: string): Promise<number> {
  const id = await findName(sql, username);
  if (id === null) return fail('username_unknown', { name: username });
  if (id === owner) return fail('transfer_to_self');
  const [person] = await sql.query<{ suspended: boolean }>(
    'select suspended_at is not null as suspended from users where id = $1',
    [id],
  );
  if (person === undefined) return fail('username_not_person', { name: username });
  if (person.suspended) fail('recipient_suspended');
  return id;
}

/**
 * Changes the owner of a bot. People are locked before bots, as when a bot is created. Secrets that the former owner
 * has seen are replaced: the former token fails at once, and the former signing secret ends as after a rotation.
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
  await sql.query(
    `update bots set owner_id = $2, owned_since = now(), token_hmac = $3, token_box = $4,
            version = nextval('control_versions'), write_version = nextval('control_versions')
      where id = $1`,
    [bot, to, credentials.token.lookup, credentials.token.box],
  );
  await sql.query(
    `update webhooks set former_signing_box = signing_box, signing_box = $2,
            former_until = now() + $3::bigint * interval '1 millisecond', version = nextval('control_versions')
      where bot_id = $1`,
    [bot, credentials.signing, credentials.overlapMs],
  );
  await sql.query('delete from bot_transfers where bot_id = $1', [bot]);
  await noteAudit(sql, bot, { type: 'user', id: from }, 'transferred', { from, to });
  await noteStale(sql, [
    ['bot', bot],
    ['write_access', bot],
    ['webhook', bot],
  ]);
}

/** Usernames of a bot and a person, as notices name them; '' for a person without a username. */
const namesOf = (sql: Sql, bot: number, person: number) =>
  one<{ username: string; person: string }>(
    sql,
    `select b.username, coalesce(u.username, '') as person from bots b, users u where b.id = $1 and u.id = $2`,
    [bot, person],
  );

/** Stores a notice to the person who got a bot or was offered it. */
async function tellRecipient(
  sql: Sql,
  kind: 'transferred_to_you' | 'transfer_offered',
  bot: number,
  owner: number,
  to: number,
): Promise<void> {
  const { username, person: from } = await namesOf(sql, bot, owner);
  await tellPerson(sql, to, { kind, bot, username, from });
}

/** Stores a notice with the outcome to the person who offered the bot. */
async function tellOfferer(
  sql: Sql,
  kind: 'transfer_accepted' | 'transfer_declined',
  bot: number,
  owner: number,
  recipient: number,
): Promise<void> {
  const { username, person: to } = await namesOf(sql, bot, recipient);
  await tellPerson(sql, owner, { kind, bot, username, to });
}

const ownCountAsRecipients = (error: unknown): never => {
  if ((error as { kind?: string }).kind === 'too_many_bots') fail('recipient_too_many_bots');
  throw error;
};

/**
 * Transfers a bot of `owner` to the person with this username. Errors: `bot_not_found`, `not_bot_owner`, those of
 * `findRecipient`, `recipient_too_many_bots`.
 */
export function transferBot(
  db: Database,
  bot: number,
  owner: number,
  username: string,
  credentials: NewCredentials,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    // Callers who do not own the bot learn nothing about the username. People are locked before the bot, so the bot's
    // owner is checked again afterwards.
    const [row] = await sql.query<{ owner_id: number | null }>('select owner_id from bots where id = $1', [
      bot,
    ]);
    checkOwner(row, owner);
    const to = await findRecipient(sql, owner, username);
    await handOver(sql, bot, owner, to, credentials).catch(ownCountAsRecipients);
    await tellRecipient(sql, 'transferred_to_you', bot, owner, to);
    return true;
  });
}

/**
 * Offers a bot to the person with this username, replacing an earlier offer. Errors: those of `transferBot` except
 * the last.
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
    await sql.query(
      `insert into bot_transfers (bot_id, from_id, to_id, expires_at)
       values ($1, $2, $3, now() + $4::bigint * interval '1 millisecond')
       on conflict (bot_id) do update set from_id = $2, to_id = $3, created_at = now(), expires_at = excluded.expires_at`,
      [bot, owner, to, ageMs],
    );
    await noteAudit(sql, bot, { type: 'user', id: owner }, 'transfer_offered', { to });
    await tellRecipient(sql, 'transfer_offered', bot, owner, to);
    return true;
  });
}

const offered = 'bot_id = $1 and to_id = $2 and expires_at > now()';

/** Transfers a bot to the person to whom it was offered. Errors: `transfer_not_found`, `too_many_bots`. */
export function acceptBot(
  db: Database,
  bot: number,
  user: number,
  credentials: NewCredentials,
): Promise<boolean> {
  return db.transaction(async (sql) => {
    const [offer] = await sql.query<{ from_id: number }>(
      // A concurrent answer to the offer waits here, and then finds that the offer no longer exists.
      `select from_id from bot_transfers where ${offered} for update`,
      [bot, user],
    );
    if (offer === undefined) return fail('transfer_not_found');
    await handOver(sql, bot, offer.from_id, user, credentials);
    await tellOfferer(sql, 'transfer_accepted', bot, offer.from_id, user);
    return true;
  });
}

/** Removes an offer, for the person who made it or the one who got it. Error: `transfer_not_found`. */
export function withdrawOffer(db: Database, bot: number, user: number): Promise<boolean> {
  return db.transaction(async (sql) => {
    const [offer] = await sql.query<{ to_id: number; from_id: number }>(
      'delete from bot_transfers where bot_id = $1 and (to_id = $2 or from_id = $2) and expires_at > now() returning to_id, from_id',
      [bot, user],
    );
    if (offer === undefined) return fail('transfer_not_found');
    const event = offer.to_id === user ? 'transfer_declined' : 'transfer_withdrawn';
    await noteAudit(sql, bot, { type: 'user', id: user }, event);
    if (offer.to_id === user) await tellOfferer(sql, 'transfer_declined', bot, offer.from_id, user);
    return true;
  });
}

export interface OfferRow {
  readonly bot_id: number;
  readonly bot_username: string;
  readonly from_id: number;
  readonly to_id: number;
  /** when the offer expires, Unix time in s */
  readonly expires_at: number;
}

/** Offers that a person made or got, for bots with ids greater than `after`, ordered by bot id. */
export function loadOffers(sql: Sql, user: number, after: number, limit: number): Promise<OfferRow[]> {
  return sql.query<OfferRow>(
    `select t.bot_id, b.username as bot_username, t.from_id, t.to_id, extract(epoch from t.expires_at)::bigint as expires_at
       from bot_transfers t join bots b on b.id = t.bot_id and b.owner_id = t.from_id
      where (t.to_id = $1 or t.from_id = $1) and t.expires_at > now() and t.bot_id > $2
      order by t.bot_id limit $3`,
    [user, after, limit],
  );
}
