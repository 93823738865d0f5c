/** Bots, their owners' operations and their commands. Every change commits in Postgres first (law 2). */
import { randomBytes } from 'node:crypto';
import { fail } from '../errors.js';
import * as rows from '../postgres/bots.js';
import { findName } from '../postgres/users.js';
import { makeToken } from '../rules/token.js';
import type { Auth } from './auth.js';
import type { Profile } from './codec.js';
import type { StoreContext } from './context.js';
import type { Bot, Commands, ControlCopies } from './control.js';
import type { Queues } from './queues.js';

export interface Bots {
  /** Null when there is no such bot. */
  find(id: number): Promise<Bot | null>;
  /** What messages show of a bot; remembered for a minute. Null when there is no such bot. */
  profile(id: number): Promise<Profile | null>;
  findByUsername(username: string): Promise<Bot | null>;
  listOf(owner: number): Promise<Bot[]>;
  /** Errors: `username_taken`, `too_many_bots`. */
  create(
    owner: number,
    username: string,
    name: string,
  ): Promise<{ readonly bot: Bot; readonly token: string }>;
  /** The token in plain text, for its owner. Errors: `bot_not_found`, `not_bot_owner`. */
  token(owner: number, id: number): Promise<string>;
  /** Replaces the token; when this returns, no node accepts the former one. Errors: `bot_not_found`, `not_bot_owner`. */
  regenerateToken(owner: number, id: number): Promise<{ readonly bot: Bot; readonly token: string }>;
  /** The bot, if `owner` owns it. Errors: `bot_not_found`, `not_bot_owner`. */
  owned(owner: number, id: number): Promise<Bot>;
  commands(id: number): Promise<Commands>;
  setCommands(id: number, key: string, commands: readonly rows.BotCommand[]): Promise<void>;
}

export const botProfile = (bot: Pick<Bot, 'id' | 'name' | 'username'>): Profile => ({
  id: bot.id,
  bot: 1,
  n: bot.name,
  u: bot.username,
});

const profileAgeMsMax = 60_000;
const profilesMax = 10_000;

const fromRow = (row: rows.BotRow): Bot => ({
  id: row.id,
  owner: row.owner_id,
  username: row.username,
  name: row.name,
  token: row.token,
});

export function createBots(context: StoreContext, control: ControlCopies, auth: Auth, queues: Queues): Bots {
  const { db, secrets } = context;
  const profiles = new Map<number, { readonly profile: Profile; readonly until: number }>();

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

  return {
    owned,
    find: (id) => control.read('bot', id),
    async profile(id) {
      const known = profiles.get(id);
      if (known && performance.now() < known.until) return known.profile;
      const bot = await control.read('bot', id);
      if (!bot) return null;
      const profile = botProfile(bot);
      if (profiles.size >= profilesMax) profiles.clear();
      profiles.set(id, { profile, until: performance.now() + profileAgeMsMax });
      return profile;
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
      return { bot: { id, owner, username, name, token: secrets.lookup(token).toString('base64') }, token };
    },
    async token(owner, id) {
      await owned(owner, id);
      const box = await rows.loadTokenBox(db, id);
      return box ? secrets.open(box, `bot:${id}`) : fail('bot_not_found');
    },
    async regenerateToken(owner, id) {
      await owned(owner, id);
      const token = newToken(id);
      const row = await rows.replaceBotToken(db, id, owner, stored(id, token));
      // Ownership may have changed since it was looked at.
      if (!row) return fail('not_bot_owner');
      await control.refresh('bot', id);
      await auth.revoke(`bot:${id}`);
      return { bot: fromRow(row), token };
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
