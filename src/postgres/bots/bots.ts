/** Statements on bots, their tokens and their commands. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { lockPerson, takeName } from '../accounts/users.js';
import { type Database, noteStale, one, type Sql } from '../sql.js';
import { type AuditActor, noteAudit } from './audit.js';
import type { BotPictures } from './pictures.js';

export interface BotRow {
  readonly id: number;
  /** null for a deleted bot, and for the management bot, which nobody owns */
  readonly owner_id: number | null;
  readonly username: string;
  /** the default name, or the name at creation if no default was set */
  readonly name: string;
  /** lookup value of the live token, base64; '' while it is blocked; null for a deleted bot and for the
   * management bot */
  readonly token: string | null;
  readonly suspended: boolean;
  readonly deleted: boolean;
  /** names of the bot by language, '' for the default */
  readonly names: TextsColumn;
  readonly version: number;
}

type TextsColumn = Readonly<Record<string, string>>;

export interface StoredToken {
  readonly lookup: Buffer;
  readonly box: Buffer;
}

export const botColumns = `id, owner_id, username, coalesce(names->>'', name) as name, case when token_hmac = blocked_hmac then '' else encode(token_hmac, 'base64') end as token,
  suspended_at is not null as suspended, deleted_at is not null as deleted, names, version`;

/**
 * Fails if a person has `max` bots already; otherwise makes concurrent creations wait until the transaction ends.
 * Error: `too_many_bots`.
 */
export async function roomForBot(
  sql: Sql,
  owner: number,
  max: number = limits.bots_per_owner_max,
): Promise<void> {
  await lockPerson(sql, owner);
  if ((await countBotsOf(sql, owner)) >= max) fail('too_many_bots');
}

/**
 * Counts a creation. The caller has locked the person's row. Error: `too_many_requests` for a person who created
 * `max` bots within a day.
 */
async function noteCreation(sql: Sql, user: number, max: number): Promise<void> {
  await sql.query("delete from bot_creations where user_id = $1 and created_at <= now() - interval '1 day'", [
    user,
  ]);
  const { count, wait } = await one<{ count: number; wait: number | null }>(
    sql,
    `select count(*) as count, ceil(extract(epoch from min(created_at) + interval '1 day' - now()))::int as wait
       from bot_creations where user_id = $1`,
    [user],
  );
  if (count >= max) fail('too_many_requests', { retry_after: wait ?? 1 });
  await sql.query('insert into bot_creations (user_id) values ($1)', [user]);
}

/**
 * Creates a bot. `tokenFor` computes the stored values of its token for the new id. Errors: `username_taken`,
 * `too_many_bots`, `too_many_requests`.
 */
export function createBot(
  db: Database,
  bot: {
    readonly owner: number;
    readonly username: string;
    readonly name: string;
    /** maximum number of bots that an owner may have */
    readonly max?: number | undefined;
  },
  tokenFor: (id: number) => StoredToken,
): Promise<number> {
  return db.transaction(async (sql) => {
    await roomForBot(sql, bot.owner, bot.max);
    const max = Math.max(bot.max ?? limits.bots_per_owner_max, limits.bots_created_per_day_min);
    await noteCreation(sql, bot.owner, max);
    const { id } = await one<{ id: number }>(sql, "select nextval('ids') as id");
    await takeName(sql, bot.username, id);
    const token = tokenFor(id);
    await sql.query(
      'insert into bots (id, owner_id, username, name, token_hmac, token_box) values ($1, $2, $3, $4, $5, $6)',
      [id, bot.owner, bot.username, bot.name, token.lookup, token.box],
    );
    await noteAudit(sql, id, { type: 'user', id: bot.owner }, 'created');
    await noteStale(sql, [['bot', id]]);
    return id;
  });
}

/** Replaces a bot's token if `owner` owns the bot now; returns null otherwise. */
export function replaceBotToken(
  db: Database,
  id: number,
  owner: number,
  token: StoredToken,
): Promise<BotRow | null> {
  return db.transaction(async (sql) => {
    const [row] = await sql.query<BotRow>(
      `update bots set token_hmac = $3, token_box = $4, version = nextval('control_versions')
        where id = $1 and owner_id = $2 returning ${botColumns}`,
      [id, owner, token.lookup, token.box],
    );
    if (row) {
      await noteAudit(sql, id, { type: 'user', id: owner }, 'token_issued');
      await noteStale(sql, [['bot', id]]);
    }
    return row ?? null;
  });
}

export async function loadBot(sql: Sql, id: number): Promise<BotRow | null> {
  const [row] = await sql.query<BotRow>(`select ${botColumns} from bots where id = $1`, [id]);
  return row ?? null;
}

/** Loads the bots with these ids; unknown ids are left out. */
export function loadBots(sql: Sql, ids: readonly number[]): Promise<BotRow[]> {
  return sql.query<BotRow>(`select ${botColumns} from bots where id = any($1::bigint[])`, [ids]);
}

/** Bots of a person with ids greater than `after`, ordered by id; the first `skip` of them are skipped. */
export function loadBotsOf(
  sql: Sql,
  owner: number,
  after: number,
  limit: number,
  skip = 0,
): Promise<BotRow[]> {
  return sql.query<BotRow>(
    `select ${botColumns} from bots where owner_id = $1 and id > $2 order by id limit $3 offset $4`,
    [owner, after, limit, skip],
  );
}

export async function countBotsOf(sql: Sql, owner: number): Promise<number> {
  const { count } = await one<{ count: number }>(
    sql,
    'select count(*) as count from bots where owner_id = $1',
    [owner],
  );
  return Number(count);
}

/** The encrypted token that is stored to show it to its owner. */
export interface TokenBox {
  readonly box: Buffer;
  /** True after a leak: the token is shown to nobody. */
  readonly blocked: boolean;
}

const boxColumns = 'token_box as box, coalesce(token_hmac = blocked_hmac, false) as blocked';

/** Encrypted token of a bot that `owner` owns now. Null otherwise. */
export async function loadTokenBox(sql: Sql, id: number, owner: number): Promise<TokenBox | null> {
  const [row] = await sql.query<TokenBox>(`select ${boxColumns} from bots where id = $1 and owner_id = $2`, [
    id,
    owner,
  ]);
  return row ?? null;
}

/** Encrypted tokens of the bots among these that `owner` owns. */
export function loadTokenBoxes(
  sql: Sql,
  owner: number,
  ids: readonly number[],
): Promise<Array<TokenBox & { readonly id: number }>> {
  return sql.query(`select id, ${boxColumns} from bots where owner_id = $1 and id = any($2)`, [owner, ids]);
}

/** Encrypted token to show to the bot's owner. Logs this in the audit log unless the token is blocked. */
export function showTokenBox(db: Database, id: number, owner: number): Promise<TokenBox | null> {
  return db.transaction(async (sql) => {
    const [row] = await sql.query<TokenBox>(
      `select ${boxColumns} from bots where id = $1 and owner_id = $2 for share`,
      [id, owner],
    );
    if (row && !row.blocked) await noteAudit(sql, id, { type: 'user', id: owner }, 'token_shown');
    return row ?? null;
  });
}

export interface BotCommand {
  readonly command: string;
  readonly description: string;
}

export interface CommandsRow {
  readonly commands: Readonly<Record<string, readonly BotCommand[]>>;
  readonly version: number;
}

/**
 * Sets the commands of one scope and language. An empty list removes them and always succeeds. Errors:
 * `too_many_command_scopes`, `commands_too_long`.
 */
export function setCommands(
  db: Database,
  id: number,
  key: string,
  commands: readonly BotCommand[],
): Promise<void> {
  return db.transaction(async (sql) => {
    const [kept] = await sql.query<{ scopes: number; bytes: number }>(
      `update bots set commands = case when $3::jsonb = '[]' then commands - $2::text
                                       else jsonb_set(commands, array[$2::text], $3::jsonb) end,
              version = nextval('control_versions')
        where id = $1
       returning (select count(*)::int from jsonb_object_keys(commands)) as scopes,
                 octet_length(commands::text) as bytes`,
      [id, key, JSON.stringify(commands)],
    );
    if (kept && commands.length > 0) {
      if (kept.scopes > limits.command_scopes_max) fail('too_many_command_scopes');
      if (kept.bytes > limits.commands_bytes_max) fail('commands_too_long');
    }
    await noteStale(sql, [['commands', id]]);
  });
}

export async function loadCommands(sql: Sql, id: number): Promise<CommandsRow | null> {
  const [row] = await sql.query<CommandsRow>('select commands, version from bots where id = $1', [id]);
  return row ?? null;
}

/** Texts to set by language, '' for the default language; a null value removes the text. */
export type TextsChange = Readonly<Record<string, string | null>>;

const isEmpty = (change: TextsChange) => Object.keys(change).length === 0;

/**
 * Sets and removes texts of a bot if `owner` owns it now, or of any bot if `owner` is null. Returns null when there
 * is no such bot.
 */
export function setTexts(
  db: Database,
  id: number,
  owner: number | null,
  change: {
    readonly names: TextsChange;
    readonly descriptions: TextsChange;
    readonly shortDescriptions: TextsChange;
  },
): Promise<BotRow | null> {
  const { names, descriptions, shortDescriptions } = change;
  const named = !isEmpty(names);
  const described = !isEmpty(descriptions) || !isEmpty(shortDescriptions);
  return db.transaction(async (sql) => {
    const [row] = await sql.query<BotRow>(
      `update bots set names = jsonb_strip_nulls(names || $3::jsonb),
              descriptions = jsonb_strip_nulls(descriptions || $4::jsonb),
              short_descriptions = jsonb_strip_nulls(short_descriptions || $5::jsonb),
              version = case when $6 then nextval('control_versions') else version end,
              descriptions_version = case when $7 then nextval('control_versions') else descriptions_version end
        where id = $1 and owner_id = coalesce($2, owner_id) returning ${botColumns}`,
      [
        id,
        owner,
        JSON.stringify(names),
        JSON.stringify(descriptions),
        JSON.stringify(shortDescriptions),
        named,
        described,
      ],
    );
    if (row) {
      const actor: AuditActor = owner === null ? { type: 'bot' } : { type: 'user', id: owner };
      const changed = Object.entries({
        name: names,
        description: descriptions,
        short_description: shortDescriptions,
      });
      await noteAudit(sql, id, actor, 'texts_changed', {
        texts: changed.filter(([, change]) => !isEmpty(change)).map(([what]) => what),
      });
      await noteStale(sql, [
        ...(named ? ([['bot', id]] as const) : []),
        ...(described ? ([['descriptions', id]] as const) : []),
      ]);
    }
    return row ?? null;
  });
}

export interface DescriptionsRow {
  readonly descriptions: TextsColumn;
  readonly short_descriptions: TextsColumn;
  readonly pictures: BotPictures;
  readonly version: number;
}

export async function loadDescriptions(sql: Sql, id: number): Promise<DescriptionsRow | null> {
  const [row] = await sql.query<DescriptionsRow>(
    'select descriptions, short_descriptions, pictures, descriptions_version as version from bots where id = $1',
    [id],
  );
  return row ?? null;
}

/** Time at which the current owner got a bot. For an unknown bot the end of time, so that no entry of it is shown. */
export async function loadOwnedSince(sql: Sql, bot: number): Promise<Date> {
  const [row] = await sql.query<{ owned_since: Date }>('select owned_since from bots where id = $1', [bot]);
  return row?.owned_since ?? new Date(8.64e15);
}
