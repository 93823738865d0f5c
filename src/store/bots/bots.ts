/** Bots, their owners' operations and their commands. Every change is committed to Postgres first (law 2). */
import { randomBytes } from 'node:crypto';
import { fail } from '../../errors.js';
import { findName } from '../../postgres/accounts/users.js';
import * as rows from '../../postgres/bots/bots.js';
import { loadWriteAccess, loadWriters, setWriteAccess } from '../../postgres/bots/write_access.js';
import type { Database } from '../../postgres/sql.js';
import type { Texts } from '../../rules/identity_texts.js';
import { makeToken } from '../../rules/token.js';
import type { Auth } from '../access/auth.js';
import type { WriteAccess, WriteAccessCopies, WritePolicy } from '../access/write_access.js';
import type { Profile } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type Bot, botOf, type Commands, type ControlCopies, type Descriptions } from '../core/control.js';
import { botProfile } from '../core/profiles.js';
import type { Queues } from '../updates/queues.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import { createRemoval, type Removal, type RemovalFollowing } from './removal.js';
import { createTransfers, type Transfers } from './transfers.js';

export interface Bots extends Transfers, Removal {
  /** Finds a bot. Returns null if there is none or it was deleted. */
  find(id: number): Promise<Bot | null>;
  /**
   * A bot's profile localised to `language`, cached under the node's lease. Null if there is no such bot; a deleted one
   * still has a profile, for readers of its messages.
   */
  profile(id: number, language: string | null): Promise<Profile | null>;
  /** The current version of a bot, for a call that has waited. */
  present(bot: Bot): Bot | Promise<Bot>;
  findByUsername(username: string): Promise<Bot | null>;
  /** Bots of a person with ids after `after`, sorted by id, without the first `skip`. */
  listOf(owner: number, after: number, limit: number, skip?: number): Promise<Bot[]>;
  countOf(owner: number): Promise<number>;
  /** Creates a bot. Errors: `username_taken`, `too_many_bots`. */
  create(
    owner: number,
    username: string,
    name: string,
  ): Promise<{ readonly bot: Bot; readonly token: string }>;
  /**
   * The plain token, for the bot's owner. The audit log records the access. Errors: `bot_not_found`, `not_bot_owner`,
   * `token_blocked`.
   */
  token(owner: number, id: number): Promise<string>;
  /** The live tokens of these bots, limited to bots that the person owns now. Used for messages with token placeholders. */
  tokensOf(owner: number, ids: readonly number[]): Promise<ReadonlyMap<number, string>>;
  /** Replaces the token. Once this returns, no node accepts the former one. Errors: `bot_not_found`, `not_bot_owner`. */
  regenerateToken(owner: number, id: number): Promise<{ readonly bot: Bot; readonly token: string }>;
  /** Returns the bot if `owner` owns it. Errors: `bot_not_found`, `not_bot_owner`. */
  owned(owner: number, id: number): Promise<Bot>;
  /** A bot's descriptions and pictures. */
  descriptions(id: number): Promise<Descriptions>;
  /** Sets texts by language; an empty text removes one. Once this returns, no node shows a former name. */
  setTexts(id: number, texts: TextsByKind): Promise<void>;
  /** Sets texts on behalf of the owner. Errors: `bot_not_found`, `not_bot_owner`. */
  setOwnTexts(owner: number, id: number, texts: TextsByKind): Promise<Bot>;
  /** A bot's write policy for direct chats. Error: `bot_not_found`. */
  writeAccess(id: number): Promise<WriteAccess>;
  /** Whether this person may write to the bot. */
  mayWrite(id: number, user: number): Promise<boolean>;
  /**
   * Sets who may write. Once this returns, no node accepts messages from anyone else. `usernames` (without `@`, at most
   * limits.writers_per_bot_max) apply to the policy `selected` and are stored as the ids of their current holders. The
   * owner may always write. Errors: `bot_not_found`, `not_bot_owner`, `username_unknown`, `username_not_person`.
   */
  setWriteAccess(owner: number, id: number, policy: WritePolicy, usernames: readonly string[]): Promise<Bot>;
  commands(id: number): Promise<Commands>;
  setCommands(id: number, key: string, commands: readonly rows.BotCommand[]): Promise<void>;
}

/** Texts of a bot by kind and language. */
export interface TextsByKind {
  readonly name?: Texts | undefined;
  readonly description?: Texts | undefined;
  readonly short_description?: Texts | undefined;
}

const noDescriptions: Descriptions = { description: {}, shortDescription: {}, pictures: {} };

/** Replaces empty texts by null, which removes them. */
const asChange = (texts: Texts = {}): rows.TextsChange =>
  Object.fromEntries(Object.entries(texts).map(([language, text]) => [language, text === '' ? null : text]));

/** `rawDb` bypasses the once-per-request wrapper, for steps that must rerun on retry. */
export function createBots(
  context: StoreContext,
  rawDb: Database,
  parts: {
    readonly control: ControlCopies;
    readonly auth: Auth;
    readonly queues: Queues;
    readonly webhooks: Pick<Webhooks, 'refresh'>;
    readonly access: WriteAccessCopies;
    readonly removal: RemovalFollowing;
  },
): Bots {
  const { db, secrets } = context;
  const { control, auth, queues, access } = parts;

  const newToken = (id: number) => makeToken('bot', id, randomBytes(32));
  const stored = (id: number, token: string): rows.StoredToken => ({
    lookup: secrets.lookup(token),
    box: secrets.seal(token, `bot:${id}`),
  });

  async function owned(owner: number, id: number): Promise<Bot> {
    const row = await rows.loadBot(db, id);
    if (!row || row.owner_id === null) return fail('bot_not_found');
    if (row.owner_id !== owner) return fail('not_bot_owner');
    return botOf(row);
  }

  /** Decrypts a bot's token. A missing row means that the owner has changed since the check. */
  const opened = (id: number, kept: rows.TokenBox | null): string => {
    if (kept === null) return fail('not_bot_owner');
    return kept.blocked ? fail('token_blocked') : secrets.open(kept.box, `bot:${id}`);
  };

  const unlessDeleted = (bot: Bot | null): Bot | null => (bot?.state === 'deleted' ? null : bot);

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
    // Nodes cache names, but not descriptions. Revoke even if the name is unchanged, because a call that died may have
    // changed it.
    if (texts.name) await auth.revoke(`bot:${id}`);
    return botOf(row);
  }

  return {
    ...createTransfers(context, parts),
    ...createRemoval(context, parts),
    owned,
    find: async (id) => unlessDeleted(await control.read('bot', id)),
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
      return id === null ? null : unlessDeleted(await control.read('bot', id));
    },
    async listOf(owner, after, limit, skip) {
      return (await rows.loadBotsOf(db, owner, after, limit, skip)).map(botOf);
    },
    countOf: (owner) => rows.countBotsOf(db, owner),
    async create(owner, username, name) {
      let token = '';
      const id = await rows.createBot(db, { owner, username, name, max: context.botsPerOwner }, (made) => {
        token = newToken(made);
        return stored(made, token);
      });
      await Promise.all([queues.open(id), control.refresh('bot', id), access.refresh(id)]);
      // An earlier run of this call created the bot.
      if (token === '') token = opened(id, await rows.loadTokenBox(db, id, owner));
      const lookup = secrets.lookup(token).toString('base64');
      return { bot: { id, owner, username, name, token: lookup, names: {} }, token };
    },
    async token(owner, id) {
      await owned(owner, id);
      return opened(id, await rows.showTokenBox(rawDb, id, owner));
    },
    async tokensOf(owner, ids) {
      const boxes = await rows.loadTokenBoxes(db, owner, ids);
      const shown = boxes.filter(({ blocked }) => !blocked);
      return new Map(shown.map(({ id, box }) => [id, secrets.open(box, `bot:${id}`)]));
    },
    async regenerateToken(owner, id) {
      await owned(owner, id);
      const token = newToken(id);
      const made = stored(id, token);
      const row = await auth.revoking(`bot:${id}`, async () => {
        // The owner may have changed since the check.
        const replaced = (await rows.replaceBotToken(db, id, owner, made)) ?? fail('not_bot_owner');
        await control.forget('bot', id);
        return replaced;
      });
      if (row.token === made.lookup.toString('base64')) return { bot: botOf(row), token };
      // This is a repeated call: answer with the token that is valid now, if the caller still owns the bot.
      const bot = await owned(owner, id);
      return { bot, token: opened(id, await rows.loadTokenBox(db, id, owner)) };
    },
    async descriptions(id) {
      return (await control.read('descriptions', id)) ?? noDescriptions;
    },
    async setTexts(id, texts) {
      if (!(await changeTexts(id, null, texts))) fail('bot_not_found');
    },
    async setOwnTexts(owner, id, texts) {
      await owned(owner, id);
      // The owner may have changed since the check.
      return (await changeTexts(id, owner, texts)) ?? fail('not_bot_owner');
    },
    async writeAccess(id) {
      const [row, usernames] = await Promise.all([loadWriteAccess(db, id, 0), loadWriters(db, id)]);
      return row ? { policy: row.policy, usernames } : fail('bot_not_found');
    },
    async mayWrite(id, user) {
      return (await loadWriteAccess(db, id, user))?.may ?? false;
    },
    async setWriteAccess(owner, id, policy, usernames) {
      await setWriteAccess(db, id, owner, policy, usernames);
      await access.refresh(id);
      return owned(owner, id);
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
