/** Blocks and unblocks a bot for a person (behaviour §11). */
import { z } from 'zod';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import type { Store } from '../../store/store.js';

const path = '/api/bots/{username}/block';
const params = z.object({ username: z.string() });

/**
 * Blocks or unblocks a bot. Does nothing if the person never started the bot, because such a bot cannot write to the
 * person anyway.
 */
async function setBlocked(store: Store, username: string, user: number, blocked: boolean): Promise<void> {
  const bot = (await store.bots.findByUsername(username.replace(/^@/, ''))) ?? fail('bot_not_found');
  await store.chats.setBlocked(bot.id, user, blocked);
}

export const blockBot = defineEndpoint({
  verb: 'POST',
  path,
  summary: 'Blocks a bot. Until the bot is unblocked, neither the person nor the bot can write to the other.',
  params,
  errors: ['bot_not_found'],
  handler: ({ user, store }, p) => setBlocked(store, p.username, user.id, true),
});

export const unblockBot = defineEndpoint({
  verb: 'DELETE',
  path,
  summary: 'Unblocks a bot. Starting the bot also unblocks it.',
  params,
  errors: ['bot_not_found'],
  handler: ({ user, store }, p) => setBlocked(store, p.username, user.id, false),
});
