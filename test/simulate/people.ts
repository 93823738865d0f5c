/** The bots, people and chats of a simulated installation. */
import { directChat, sharedChat } from '../../src/store/core/keys.js';
import { createSecrets, type Secrets } from '../../src/store/core/secrets.js';
import type { NewMessage, Sender } from '../../src/store/messages/messages.js';

export const partitions = 2;
export const bots = [100_001, 100_002] as const;
export const users = [5_001, 5_002] as const;
/** The people who react to posts of the channel. */
export const reactors = [...users, 5_003, 5_004] as const;
export const group = sharedChat(-100_700);
/** A public channel without bots. */
export const channel = sharedChat(-100_801);
export const directs = bots.flatMap((bot) => users.map((user) => directChat(bot, user)));

const made = createSecrets(['ab'.repeat(24)], [{ id: 'k1', key: Buffer.alloc(32, 7) }]);
const derived = new Map<string, Buffer>();

/** The secrets of all installations. Caches the derived keys, because each new process needs several of them. */
export const secrets: Secrets = {
  ...made,
  derive(purpose) {
    const known = derived.get(purpose) ?? made.derive(purpose);
    derived.set(purpose, known);
    return known;
  },
};

const profile = (id: number, isBot: boolean) =>
  isBot ? { id, bot: 1 as const, n: `Bot ${id}`, u: `bot_${id}` } : { id, n: `User ${id}` };
export const botSender = (id: number): Sender => ({ id, isBot: true, profile: profile(id, true) });
export const userSender = (id: number): Sender => ({ id, isBot: false, profile: profile(id, false) });

export const newMessage = (text: string): NewMessage => ({
  ...{ content: { text }, markup: null, flags: 0, replyTo: 0, allowMissingReply: false },
});
