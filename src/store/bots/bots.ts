/** Bots, their owners' operations and their commands. Every change commits in Postgres first (law 2). */
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
  /** Null when there is no such bot, or no more. */
  find(id: number): Promise<Bot | null>;
  /** What people who read this language are shown of a bot; remembered under the node's lease. Null when there is no such
   * bot; a deleted one is still shown to those who read what it wrote. */
  profile(id: number, language: string | null): Promise<Profile | null>;
  /** The bot as it is called now, for a call that has waited. */
  present(bot: Bot): Bot | Promise<Bot>;
  findByUsername(username: string): Promise<Bot | null>;
  /** Bots of a person behind an id, in the order of ids; `skip` of them are left out. */
  listOf(owner: number, after: number, limit: number, skip?: number): Promise<Bot[]>;
  countOf(owner: number): Promise<number>;
  /** Errors: `username_taken`, `too_many_bots`. */
  create(
    owner: number,
    username: string,
    name: string,
  ): Promise<{ readonly bot: Bot; readonly token: string }>;
  /** The token in plain text, for its owner, which the audit log tells. Errors: `bot_not_found`, `not_bot_owner`,
   * `token_blocked`. */
  token(owner: number, id: number): Promise<string>;
  /** The live tokens of those of these bots that this person owns now, for messages that hold their places. */
  tokensOf(owner: number, ids: readonly number[]): Promise<ReadonlyMap<number, string>>;
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
  /** Who may write to a bot in a direct chat. Error: `bot_not_found`. */
  writeAccess(id: number): Promise<WriteAccess>;
  /** Whether this person may. */
  mayWrite(id: number, user: number): Promise<boolean>;
  /**
   * Sets who may write: when this returns, nobody else gets a message through on any node. `usernames` (without `@`, at most
   * limits.writers_per_bot_max) count with the policy `selected` and are kept as the ids of those who have them now. The owner
   * may always write. Errors: `bot_not_found`, `not_bot_owner`, `username_unknown`, `username_not_person`.
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

/** Null, which removes, in place of each empty text. */
const asChange = (texts: Texts = {}): rows.TextsChange =>
  Object.fromEntries(Object.entries(texts).map(([language, text]) => [language, text === '' ? null : text]));

/** `anew` is the database for what every run of a call does again. */
export function createBots(
  context: StoreContext,
  anew: Database,
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

  /** Ownership may have changed since it was looked at: the box is read with it. */
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
    // Nodes remember names, descriptions they do not. A name that stays the same may have been changed by a call that died.
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
      // A former run of the call made it.
      if (token === '') token = opened(id, await rows.loadTokenBox(db, id, owner));
      const lookup = secrets.lookup(token).toString('base64');
      return { bot: { id, owner, username, name, token: lookup, names: {} }, token };
    },
    async token(owner, id) {
      await owned(owner, id);
      return opened(id, await rows.showTokenBox(anew, id, owner));
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
        // Ownership may have changed since it was looked at.
        const replaced = (await rows.replaceBotToken(db, id, owner, made)) ?? fail('not_bot_owner');
        await control.forget('bot', id);
        return replaced;
      });
      if (row.token === made.lookup.toString('base64')) return { bot: botOf(row), token };
      // A call that came again answers with what is valid now, to who is the owner now.
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
      // Ownership may have changed since it was looked at.
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
