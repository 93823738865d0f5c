/**
 * Manages bots and their commands, and the operations of owners on their bots. Every change is committed to Postgres
 * first (law 2).
 */
import { fail } from '../../errors.js';
import { deleteBot } from '../../postgres/accounts/removal.js';
import { findName } from '../../postgres/accounts/users.js';
import * as rows from '../../postgres/bots/bots.js';
import { setInlineMode } from '../../postgres/bots/inline_mode.js';
import {
  loadMenuButtonOf,
  setDefaultRights,
  setMenuButton,
  setMenuButtonOf,
} from '../../postgres/bots/menu_buttons.js';
import { loadWriteAccess, loadWriters, setWriteAccess } from '../../postgres/bots/write_access.js';
import type { Database } from '../../postgres/sql.js';
import type { Random } from '../../random.js';
import type { Texts } from '../../rules/identity_texts.js';
import type { MenuButton } from '../../rules/menu_button.js';
import { makeToken } from '../../rules/token.js';
import type { WriteAccess, WritePolicy } from '../access/write_access.js';
import { tellSettings } from '../chats/person_hints.js';
import type { Profile } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type Bot, botOf, type Commands, type Descriptions, type InlineMode } from '../core/control.js';
import { directChat } from '../core/keys.js';
import { botProfile } from '../core/profiles.js';
import { storeLimits as limits } from '../limits.js';
import { type BotParts, Transfers } from './transfers.js';

export interface TextsByKind {
  readonly name?: Texts | undefined;
  readonly description?: Texts | undefined;
  readonly short_description?: Texts | undefined;
}

const noDescriptions: Descriptions = {
  description: {},
  shortDescription: {},
  pictures: {},
  menuButton: null,
  defaultRights: {},
};

const asChange = (texts: Texts = {}): rows.TextsChange =>
  Object.fromEntries(Object.entries(texts).map(([language, text]) => [language, text === '' ? null : text]));

const newToken = (random: Random, id: number) => makeToken('bot', id, random.bytes(32));

const unlessDeleted = (bot: Bot | null): Bot | null => (bot?.state === 'deleted' ? null : bot);

export class Bots extends Transfers {
  readonly #rawDb: Database;

  /**
   * Steps that must run again on a retry use `rawDb`. It bypasses the wrapper that runs each transaction only once per
   * request.
   */
  constructor(context: StoreContext, rawDb: Database, parts: BotParts) {
    super(context, parts);
    this.#rawDb = rawDb;
  }

  /** Returns the bot if the person owns it. Errors: `bot_not_found`, `not_bot_owner`. */
  async owned(owner: number, id: number): Promise<Bot> {
    const row = await rows.loadBot(this.context.db, id);
    if (!row || row.owner_id === null) return fail('bot_not_found');
    if (row.owner_id !== owner) return fail('not_bot_owner');
    return botOf(row);
  }

  async find(id: number): Promise<Bot | null> {
    return unlessDeleted(await this.parts.control.read('bot', id));
  }

  /**
   * Returns a bot's profile in a language, or null if the bot never existed. The profile is cached under the node's
   * lease. A deleted bot still has a profile, because its messages are still shown.
   */
  async profile(id: number, language: string | null): Promise<Profile | null> {
    const bot = await this.parts.auth.botById(id);
    return bot && botProfile(bot, language);
  }

  /**
   * Returns the bot's current record. Call this after waiting, because the record that the caller already has may be
   * outdated.
   */
  present(bot: Bot): Bot | Promise<Bot> {
    const known = this.parts.auth.botById(bot.id);
    return known instanceof Promise ? known.then((found) => found ?? bot) : (known ?? bot);
  }

  async findByUsername(username: string): Promise<Bot | null> {
    const id = await findName(this.context.db, username);
    return id === null ? null : unlessDeleted(await this.parts.control.read('bot', id));
  }

  async listOf(owner: number, after: number, limit: number, skip?: number): Promise<Bot[]> {
    return (await rows.loadBotsOf(this.context.db, owner, after, limit, skip)).map(botOf);
  }

  countOf(owner: number) {
    return rows.countBotsOf(this.context.db, owner);
  }

  /** Creates a bot. Errors: `username_taken`, `too_many_bots`. */
  async create(owner: number, username: string, name: string) {
    let token = '';
    const id = await rows.createBot(
      this.context.db,
      { owner, username, name, max: this.context.botsPerOwner },
      (made) => {
        token = newToken(this.context.random, made);
        return this.#stored(made, token);
      },
    );
    await Promise.all([
      this.parts.queues.open(id),
      this.parts.control.refresh('bot', id),
      this.parts.access.refresh(id),
    ]);
    // If an earlier attempt of this call created the bot, loads the token from that attempt.
    if (token === '') token = this.#opened(id, await rows.loadTokenBox(this.context.db, id, owner));
    const lookup = this.context.secrets.lookup(token).toString('base64');
    return { bot: { id, owner, username, name, token: lookup, names: {} }, token };
  }

  /**
   * Returns a bot's token in plain text, and records the access in the audit log. Errors: `bot_not_found`,
   * `not_bot_owner`, `token_blocked`.
   */
  async token(owner: number, id: number): Promise<string> {
    await this.owned(owner, id);
    return this.#opened(id, await rows.showTokenBox(this.#rawDb, id, owner));
  }

  /** Returns the key by which a bot's pages verify signatures. Errors: `bot_not_found`, `token_blocked`. */
  async signingToken(id: number): Promise<string> {
    const bot = unlessDeleted(await this.parts.control.read('bot', id)) ?? fail('bot_not_found');
    return this.#opened(id, await rows.loadTokenBox(this.context.db, id, bot.owner));
  }

  /**
   * Returns the valid tokens of those bots in `ids` that the person owns now. Messages store placeholders instead of
   * tokens, and the person sees these tokens in their place.
   */
  async tokensOf(owner: number, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const boxes = await rows.loadTokenBoxes(this.context.db, owner, ids);
    const shown = boxes.filter(({ blocked }) => !blocked);
    return new Map(shown.map(({ id, box }) => [id, this.context.secrets.open(box, `bot:${id}`)]));
  }

  /**
   * Replaces a bot's token. Afterwards no node accepts the previous token. Errors: `bot_not_found`, `not_bot_owner`.
   */
  async regenerateToken(owner: number, id: number): Promise<{ readonly bot: Bot; readonly token: string }> {
    await this.owned(owner, id);
    const token = newToken(this.context.random, id);
    const made = this.#stored(id, token);
    const row = await this.parts.auth.revoking(`bot:${id}`, async () => {
      // Checks again that the caller owns the bot, because the bot may have a new owner since the first check.
      const replaced =
        (await rows.replaceBotToken(this.context.db, id, owner, made)) ?? fail('not_bot_owner');
      await this.parts.control.forget('bot', id);
      return replaced;
    });
    if (row.token === made.lookup.toString('base64')) return { bot: botOf(row), token };
    // If an earlier attempt of this call replaced the token, returns the token that is valid now. The caller must still
    // own the bot.
    const bot = await this.owned(owner, id);
    return { bot, token: this.#opened(id, await rows.loadTokenBox(this.context.db, id, owner)) };
  }

  async descriptions(id: number): Promise<Descriptions> {
    return (await this.parts.control.read('descriptions', id)) ?? noDescriptions;
  }

  /**
   * Sets a bot's texts by language. An empty text removes the stored text. Afterwards no node shows the previous texts.
   */
  async setTexts(id: number, texts: TextsByKind) {
    if (!(await this.#changeTexts(id, null, texts))) fail('bot_not_found');
  }

  /** Errors: `bot_not_found`, `not_bot_owner`. */
  async setOwnTexts(owner: number, id: number, texts: TextsByKind): Promise<Bot> {
    await this.owned(owner, id);
    // Checks again that the caller owns the bot, because the bot may have a new owner since the first check.
    return (await this.#changeTexts(id, owner, texts)) ?? fail('not_bot_owner');
  }

  /** Error: `bot_not_found`. */
  async writeAccess(id: number): Promise<WriteAccess> {
    const [row, usernames] = await Promise.all([
      loadWriteAccess(this.context.db, id, 0),
      loadWriters(this.context.db, id),
    ]);
    return row ? { policy: row.policy, usernames } : fail('bot_not_found');
  }

  async mayWrite(id: number, user: number): Promise<boolean> {
    return (await loadWriteAccess(this.context.db, id, user))?.may ?? false;
  }

  /**
   * Sets who may write to a bot. Afterwards no node accepts messages from anyone else. `usernames` (without `@`, at
   * most limits.writers_per_bot_max) are used only for the policy `selected`. The ids of the people who have these
   * usernames now are stored. The owner may always write. Errors: `bot_not_found`, `not_bot_owner`, `username_unknown`,
   * `username_not_person`.
   */
  async setWriteAccess(owner: number, id: number, policy: WritePolicy, usernames: readonly string[]) {
    await setWriteAccess(this.context.db, id, owner, policy, usernames);
    await this.parts.access.refresh(id);
    return this.owned(owner, id);
  }

  /**
   * Sets the inline mode. Null turns it off. Afterwards no node uses the previous mode. Errors: `bot_not_found`,
   * `not_bot_owner`.
   */
  async setInlineMode(owner: number, id: number, mode: InlineMode | null): Promise<Bot> {
    await setInlineMode(this.context.db, id, owner, mode);
    await this.parts.control.refresh('bot', id);
    // Removes the bot from the caches of all nodes, because `getMe` and inline queries use the cached record.
    await this.parts.auth.revoke(`bot:${id}`);
    return this.owned(owner, id);
  }

  async commands(id: number): Promise<Commands> {
    return (await this.parts.control.read('commands', id)) ?? {};
  }

  /**
   * Returns the menu button that a person sees: the button that was set for this person, or otherwise the bot's default
   * button. Returns null if there is neither. If `user` is null, returns the default button.
   */
  async menuButton(id: number, user: number | null): Promise<MenuButton | null> {
    const own = user === null ? null : await loadMenuButtonOf(this.context.db, id, user);
    return own ?? (await this.descriptions(id)).menuButton;
  }

  /** Sets the menu button for a person, or the default button if `user` is null. A null `button` removes the button. */
  async setMenuButton(id: number, user: number | null, button: MenuButton | null) {
    if (user !== null) return setMenuButtonOf(this.context.db, id, user, button);
    await setMenuButton(this.context.db, id, button);
    await this.parts.control.refresh('descriptions', id);
  }

  async setDefaultRights(id: number, type: 'group' | 'channel', rights: readonly string[]) {
    await setDefaultRights(this.context.db, id, type, rights);
    await this.parts.control.refresh('descriptions', id);
  }

  async setCommands(id: number, key: string, commands: readonly rows.BotCommand[]) {
    await rows.setCommands(this.context.db, id, key, commands);
    await this.parts.control.refresh('commands', id);
  }

  /**
   * Deletes a bot. Afterwards no node accepts its token, nobody can write to it, and its webhook and pending updates
   * are gone. The bot also leaves its groups and channels, which takes some seconds if there are many. The bot's
   * messages remain, and its username stays reserved for limits.deleted_username_hold_ms. Errors: `bot_not_found`,
   * `not_bot_owner`.
   */
  async remove(owner: number, id: number): Promise<void> {
    const { control, auth, removal } = this.parts;
    await auth.revoking(`bot:${id}`, async () => {
      await deleteBot(this.context.db, id, owner, limits.deleted_username_hold_ms);
      await control.forget('bot', id);
    });
    await removal.follow(id, true);
  }

  #stored(id: number, token: string): rows.StoredToken {
    const { secrets } = this.context;
    return { lookup: secrets.lookup(token), box: secrets.seal(token, `bot:${id}`) };
  }

  /** Decrypts a bot's token. `kept` is null if the bot got another owner after the caller was checked. */
  #opened(id: number, kept: rows.TokenBox | null): string {
    if (kept === null) return fail('not_bot_owner');
    return kept.blocked ? fail('token_blocked') : this.context.secrets.open(kept.box, `bot:${id}`);
  }

  async #changeTexts(id: number, owner: number | null, texts: TextsByKind): Promise<Bot | null> {
    const row = await rows.setTexts(this.context.db, id, owner, {
      names: asChange(texts.name),
      descriptions: asChange(texts.description),
      shortDescriptions: asChange(texts.short_description),
    });
    if (!row) return null;
    const described = texts.description !== undefined || texts.short_description !== undefined;
    await Promise.all([
      texts.name && this.parts.control.refresh('bot', id),
      described && this.parts.control.refresh('descriptions', id),
    ]);
    // Removes the bot from the caches of all nodes, even if the name is unchanged. An earlier attempt may have changed
    // the name and then failed before this step. Nodes cache names, but not descriptions.
    const bot = botOf(row);
    if (texts.name) {
      await this.parts.auth.revoke(`bot:${id}`);
      await tellSettings(this.context, bot.owner, directChat(id, bot.owner));
    }
    return bot;
  }
}
