/** SQL statements for bots, their tokens and their commands. */
import { fail } from '../../errors.js';
import { ruleLimits } from '../../rules/limits.js';
import { lockPerson, takeName } from '../accounts/users.js';
import { postgresLimits as limits } from '../limits.js';
import { type Database, fragment, noteStale, type Sql } from '../sql.js';
import { type AuditActor, noteAudit } from './audit.js';
import type { MenuButton } from './menu_buttons.js';
import type { BotPictures } from './pictures.js';

export interface BotRow {
  readonly id: number;
  /** The owner. Null if the bot was deleted, or if it is the management bot. */
  readonly owner_id: number | null;
  readonly username: string;
  /** The bot's default name, or the name given at its creation if no default is set. */
  readonly name: string;
  /**
   * The lookup value of the valid token, in base64. '' while the token is blocked. Null for a deleted bot and for the
   * management bot.
   */
  readonly token: string | null;
  readonly suspended: boolean;
  readonly deleted: boolean;
  /** The names by language. '' is the default language. */
  readonly names: TextsColumn;
  /** The text that the composer shows after the bot's username. Null while inline mode is off. */
  readonly inline_placeholder: string | null;
  readonly inline_feedback: boolean;
  readonly version: number;
}

type TextsColumn = Readonly<Record<string, string>>;

export interface StoredToken {
  readonly lookup: Buffer;
  readonly box: Buffer;
}

const botColumns = fragment(`id, owner_id, username, coalesce(names->>'', name) as name,
  case when token_hmac = blocked_hmac then '' else encode(token_hmac, 'base64') end as token,
  suspended_at is not null as suspended, deleted_at is not null as deleted, names,
  inline_placeholder, inline_feedback, version`);

/**
 * Locks the person until the transaction ends, so that other calls that create a bot for this person wait. Fails if the
 * person already has `max` bots. Error: `too_many_bots`.
 */
export async function roomForBot(
  sql: Sql,
  owner: number,
  max: number = ruleLimits.bots_per_owner_max,
): Promise<void> {
  await lockPerson(sql, owner);
  if ((await countBotsOf(sql, owner)) >= max) fail('too_many_bots');
}

/**
 * Counts a bot that a person creates. The caller must have locked the person's row. Error: `too_many_requests` if the
 * person created `max` bots within the last day.
 */
async function noteCreation(sql: Sql, user: number, max: number): Promise<void> {
  await sql.run`delete from bot_creations where user_id = ${user} and created_at <= now() - interval '1 day'`;
  const { count, wait } = await sql.one<{ count: number; wait: number | null }>`
    select count(*) as count,
      ceil(extract(epoch from min(created_at) + interval '1 day' - now()))::int as wait
    from bot_creations where user_id = ${user}`;
  if (count >= max) fail('too_many_requests', { retry_after: wait ?? 1 });
  await sql.run`insert into bot_creations (user_id) values (${user})`;
}

/**
 * Creates a bot. `tokenFor` computes the token's stored values from the new bot's id. Errors: `username_taken`,
 * `too_many_bots`, `too_many_requests`.
 */
export function createBot(
  db: Database,
  bot: {
    readonly owner: number;
    readonly username: string;
    readonly name: string;
    readonly max?: number | undefined;
  },
  tokenFor: (id: number) => StoredToken,
): Promise<number> {
  return db.transaction(async (sql) => {
    await roomForBot(sql, bot.owner, bot.max);
    const max = Math.max(bot.max ?? ruleLimits.bots_per_owner_max, limits.bots_created_per_day_min);
    await noteCreation(sql, bot.owner, max);
    const id = await sql.value<number>`select nextval('ids') as id`;
    await takeName(sql, bot.username, id);
    const token = tokenFor(id);
    await sql.run`
      insert into bots (id, owner_id, username, name, token_hmac, token_box)
      values (${id}, ${bot.owner}, ${bot.username}, ${bot.name}, ${token.lookup}, ${token.box})`;
    await noteAudit(sql, id, { type: 'user', id: bot.owner }, 'created');
    await noteStale(sql, [['bot', id]]);
    return id;
  });
}

/** Replaces a bot's token. Returns null if `owner` does not own the bot now. */
export function replaceBotToken(
  db: Database,
  id: number,
  owner: number,
  token: StoredToken,
): Promise<BotRow | null> {
  return db.transaction(async (sql) => {
    const row = await sql.first<BotRow>`
      update bots set token_hmac = ${token.lookup}, token_box = ${token.box},
        version = nextval('control_versions')
      where id = ${id} and owner_id = ${owner} returning ${botColumns}`;
    if (row) {
      await noteAudit(sql, id, { type: 'user', id: owner }, 'token_issued');
      await noteStale(sql, [['bot', id]]);
    }
    return row;
  });
}

export const loadBot = (sql: Sql, id: number) => sql.first<BotRow>`
  select ${botColumns} from bots where id = ${id}`;

export const loadBots = (sql: Sql, ids: readonly number[]) => sql.rows<BotRow>`
  select ${botColumns} from bots where id = any(${ids}::bigint[])`;

export const loadBotsOf = (
  sql: Sql,
  owner: number,
  after: number,
  limit: number,
  skip = 0,
) => sql.rows<BotRow>`
  select ${botColumns} from bots where owner_id = ${owner} and id > ${after}
  order by id limit ${limit} offset ${skip}`;

export const countBotsOf = (sql: Sql, owner: number) => sql.value<number>`
  select count(*) as count from bots where owner_id = ${owner}`;

/** The encrypted token, which is stored because the owner may ask to see it. */
export interface TokenBox {
  readonly box: Buffer;
  /** Whether the token is blocked after a leak. Nobody can see a blocked token. */
  readonly blocked: boolean;
}

const boxColumns = fragment('token_box as box, coalesce(token_hmac = blocked_hmac, false) as blocked');

export const loadTokenBox = (sql: Sql, id: number, owner: number) => sql.first<TokenBox>`
  select ${boxColumns} from bots where id = ${id} and owner_id = ${owner}`;

export const loadTokenBoxes = (sql: Sql, owner: number, ids: readonly number[]) =>
  sql.rows<TokenBox & { readonly id: number }>`
    select id, ${boxColumns} from bots where owner_id = ${owner} and id = any(${ids})`;

/** Returns the encrypted token. Adds an audit entry unless the token is blocked. */
export function showTokenBox(db: Database, id: number, owner: number): Promise<TokenBox | null> {
  return db.transaction(async (sql) => {
    const row = await sql.first<TokenBox>`
      select ${boxColumns} from bots where id = ${id} and owner_id = ${owner} for share`;
    if (row && !row.blocked) await noteAudit(sql, id, { type: 'user', id: owner }, 'token_shown');
    return row;
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
 * Sets a bot's commands for one scope and language. An empty list removes the commands and never fails. Errors:
 * `too_many_command_scopes`, `commands_too_long`.
 */
export function setCommands(
  db: Database,
  id: number,
  key: string,
  commands: readonly BotCommand[],
): Promise<void> {
  return db.transaction(async (sql) => {
    const list = JSON.stringify(commands);
    const kept = await sql.first<{ scopes: number; bytes: number }>`
      update bots set commands = case when ${list}::jsonb = '[]' then commands - ${key}::text
                                      else jsonb_set(commands, array[${key}::text], ${list}::jsonb) end,
        version = nextval('control_versions')
      where id = ${id}
      returning (select count(*)::int from jsonb_object_keys(commands)) as scopes,
        octet_length(commands::text) as bytes`;
    if (kept && commands.length > 0) {
      if (kept.scopes > ruleLimits.command_scopes_max) fail('too_many_command_scopes');
      if (kept.bytes > limits.commands_bytes_max) fail('commands_too_long');
    }
    await noteStale(sql, [['commands', id]]);
  });
}

export const loadCommands = (sql: Sql, id: number) => sql.first<CommandsRow>`
  select commands, version from bots where id = ${id}`;

/** Texts by language. '' is the default language. A null value removes the text. */
export type TextsChange = Readonly<Record<string, string | null>>;

const isEmpty = (change: TextsChange) => Object.keys(change).length === 0;

/**
 * Sets texts of a bot. If `owner` is given, that person must own the bot now. Returns null if the bot does not exist or
 * belongs to somebody else.
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
    const row = await sql.first<BotRow>`
      update bots set names = jsonb_strip_nulls(names || ${JSON.stringify(names)}::jsonb),
        descriptions = jsonb_strip_nulls(descriptions || ${JSON.stringify(descriptions)}::jsonb),
        short_descriptions = jsonb_strip_nulls(short_descriptions || ${JSON.stringify(shortDescriptions)}::jsonb),
        version = case when ${named} then nextval('control_versions') else version end,
        descriptions_version =
          case when ${described} then nextval('control_versions') else descriptions_version end
      where id = ${id} and owner_id = coalesce(${owner}, owner_id) returning ${botColumns}`;
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
    return row;
  });
}

/** The rights that a bot requests when it becomes an administrator, for each type of chat. */
export interface DefaultRights {
  readonly group?: readonly string[];
  readonly channel?: readonly string[];
}

export interface DescriptionsRow {
  readonly descriptions: TextsColumn;
  readonly short_descriptions: TextsColumn;
  readonly pictures: BotPictures;
  readonly menu_button: MenuButton | null;
  readonly default_rights: DefaultRights;
  readonly version: number;
}

export const loadDescriptions = (sql: Sql, id: number) => sql.first<DescriptionsRow>`
  select descriptions, short_descriptions, pictures, menu_button, default_rights, descriptions_version as version
  from bots
  where id = ${id}`;

/**
 * Loads when the present owner of a bot became its owner. For an unknown bot, returns a time in the distant future, so
 * that no audit entry is shown.
 */
export const loadOwnedSince = async (sql: Sql, bot: number) =>
  (await sql.firstValue<Date>`select owned_since from bots where id = ${bot}`) ?? new Date(8.64e15);
