/** Bots, their owners' operations and their commands. Every change commits in Postgres first (law 2). */
import { randomBytes } from 'node:crypto';
import { fail } from '../errors.js';
import * as rows from '../postgres/bots.js';
import { findName } from '../postgres/users.js';
import { type Texts, textIn } from '../rules/identity_texts.js';
import { makeToken } from '../rules/token.js';
import type { Auth } from './auth.js';
import type { Profile } from './codec.js';
import type { StoreContext } from './context.js';
import type { Bot, Commands, ControlCopies, Descriptions } from './control.js';
import type { Queues } from './queues.js';

export interface Bots {
  /** Null when there is no such bot. */
  find(id: number): Promise<Bot | null>;
  /** What people who read this language are shown of a bot; remembered under the node's lease. Null when there is no such
   * bot. */
  profile(id: number, language: string | null): Promise<Profile | null>;
  /** The bot as it is called now, for a call that has waited. */
  present(bot: Bot): Bot | Promise<Bot>;
  findByUsername(username: string): Promise<Bot | null>;
  listOf(owner: number): Promise<Bot[]>;
  /** Errors: `username_taken`, `too_many_bots`. */
  create(
    owner: number,
    username: string,
    name: string,
  ): Promise<{ readonly bot: Bot; readonly token: string }>;
  /** The token in plain text, for its owner. Errors: `bot_not_found`, `not_bot_owner`, `token_blocked`. */
  token(owner: number, id: number): Promise<string>;
  /** Replaces the token; when this returns, no node accepts the former one. Errors: `bot_not_found`, `not_bot_owner`. */
  regenerateToken(owner: number, id: number): Promise<{ readonly bot: Bot; readonly token: string }>;
  /** The bot, if `owner` owns it. Errors: `bot_not_found`, `not_bot_owner`. */
  owned(owner: number, id: number): Promise<Bot>;
  /** What a bot says of itself besides its name. */
  descriptions(id: number): Promise<Descriptions>;
  /** Sets texts by language; empty ones remove. When this returns, no node shows what a changed name was before. */
  setTexts(id: number, texts: TextsByKind): Promise<void>;
  /** The same by the owner. Errors: `bot_not_found`, `not_bot_owner`. */
  setOwnTexts(owner: number, id: number, texts: TextsByKind): Promise<Bot>;
  commands(id: number): Promise<Commands>;
  setCommands(id: number, key: string, commands: readonly rows.BotCommand[]): Promise<void>;
}

/** Texts of a bot by kind and language. */
export interface TextsByKind {
  readonly name?: Texts | undefined;
  readonly description?: Texts | undefined;
  readonly short_description?: Texts | undefined;
}

/** What is shown of a bot to those who read this language; without one, and to bots, the default. */
export const botProfile = (
  bot: Pick<Bot, 'id' | 'name' | 'username' | 'names'>,
  language: string | null = null,
): Profile => ({
  id: bot.id,
  bot: 1,
  n: textIn(bot.names, language, bot.name),
  u: bot.username,
});

const noDescriptions: Descriptions = { description: {}, shortDescription: {} };

/** Null, which removes, in place of each empty text. */
const asChange = (texts: Texts = {}): rows.TextsChange =>
  Object.fromEntries(Object.entries(texts).map(([language, text]) => [language, text === '' ? null : text]));

const fromRow = (row: rows.BotRow): Bot => ({
  id: row.id,
  owner: row.owner_id,
  username: row.username,
  name: row.name,
  token: row.token,
  names: row.names,
});

export function createBots(context: StoreContext, control: ControlCopies, auth: Auth, queues: Queues): Bots {
  const { db, secrets } = context;

  const newToken = (id: number) => makeToken('bot', id, randomBytes(32));
  const stored = (id: number, token: string): rows.StoredToken => ({
    lookup: secrets.lookup(token),
    box: secrets.seal(token, `bot:${id}`),
  });

  async function owned(owner: number, id: number): Promise<Bot> {
    const row = await rows.loadBot(db, id);
    if (!row) return fail('bot_not_found');
    if (row.owner_id !== owner) return fail('not_bot_owner');
    return fromRow(row);
  }

  async function readToken(id: number): Promise<string> {
    const kept = await rows.loadTokenBox(db, id);
    if (kept === null) return fail('bot_not_found');
    return kept.blocked ? fail('token_blocked') : secrets.open(kept.box, `bot:${id}`);
  }

  async function changeTexts(id: number, owner: number | null, texts: TextsByKind): Promise<Bot | null> {
    const row = await rows.setTexts(db, id, owner, {
      names: asChange(texts.name),
      descriptions: asChange(texts.description),
      shortDescriptions: asChange(texts.short_description),
    });
    if (!row) return null;
    const described = texts.description !== undefined || texts.short_description !== undefined;
    await Promise.all([
      texts.name && control.refresh('bot', id),
      described && control.refresh('descriptions', id),
    ]);
    // Nodes remember names, descriptions they do not. A name that stays the same may have been changed by a call that died.
    if (texts.name) await auth.revoke(`bot:${id}`);
    return fromRow(row);
  }

  return {
    owned,
    find: (id) => control.read('bot', id),
    async profile(id, language) {
      const bot = await auth.botById(id);
      return bot && botProfile(bot, language);
    },
    present(bot) {
      const known = auth.botById(bot.id);
      return known instanceof Promise ? known.then((found) => found ?? bot) : (known ?? bot);
    },
    async findByUsername(username) {
      const id = await findName(db, username);
      return id === null ? null : control.read('bot', id);
    },
    async listOf(owner) {
      return (await rows.loadBotsOf(db, owner)).map(fromRow);
    },
    async create(owner, username, name) {
      let token = '';
      const id = await rows.createBot(db, { owner, username, name }, (made) => {
        token = newToken(made);
        return stored(made, token);
      });
      await Promise.all([queues.open(id), control.refresh('bot', id)]);
      // A former run of the call made it.
      if (token === '') token = await readToken(id);
      const lookup = secrets.lookup(token).toString('base64');
      return { bot: { id, owner, username, name, token: lookup, names: {} }, token };
    },
    async token(owner, id) {
      await owned(owner, id);
      return readToken(id);
    },
    async regenerateToken(owner, id) {
      await owned(owner, id);
      const token = newToken(id);
      const made = stored(id, token);
      const row = await rows.replaceBotToken(db, id, owner, made);
      // Ownership may have changed since it was looked at.
      if (!row) return fail('not_bot_owner');
      await control.refresh('bot', id);
      await auth.revoke(`bot:${id}`);
      if (row.token === made.lookup.toString('base64')) return { bot: fromRow(row), token };
      // A call that came again answers with what is valid now, to who is the owner now.
      await owned(owner, id);
      return { bot: fromRow(row), token: await readToken(id) };
    },
    async descriptions(id) {
      return (await control.read('descriptions', id)) ?? noDescriptions;
    },
    async setTexts(id, texts) {
      if (!(await changeTexts(id, null, texts))) fail('bot_not_found');
    },
    async setOwnTexts(owner, id, texts) {
      await owned(owner, id);
      // Ownership may have changed since it was looked at.
      return (await changeTexts(id, owner, texts)) ?? fail('not_bot_owner');
    },
    async commands(id) {
      return (await control.read('commands', id)) ?? {};
    },
    async setCommands(id, key, commands) {
      await rows.setCommands(db, id, key, commands);
      await control.refresh('commands', id);
    },
  };
}
