import { z } from 'zod';
import { textContent, userSender } from '../../actions/compose.js';
import { startPayload } from '../../actions/start.js';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { directChat } from '../../store/core/keys.js';
import { botProfile } from '../../store/core/profiles.js';
import { viewMessage } from '../../view/messages.js';
import { message } from '../../wire/results.js';
import { optional } from '../../wire/schema.js';

export const startBot = defineEndpoint({
  verb: 'POST',
  path: '/api/bots/{username}/start',
  summary: 'Opens the caller’s direct chat with a bot, unblocks the bot and sends it /start.',
  params: z.object({ username: z.string(), payload: optional(startPayload) }),
  errors: ['bot_not_found', 'cant_write_to_bot', 'too_many_chats'],
  result: message,
  handler: async ({ user, store }, p) => {
    const bot = (await store.bots.findByUsername(p.username.replace(/^@/, ''))) ?? fail('bot_not_found');
    const chat = directChat(bot.id, user.id);
    await store.fairUse?.person(user.id, chat, 1);
    await store.chats.openDirect(bot.id, user.id);
    const sent = await store.messages.send(chat, userSender(user), {
      content: await textContent(
        store,
        { id: user.id, isBot: false, chat },
        { text: p.payload === undefined ? '/start' : `/start ${p.payload}` },
      ),
      markup: null,
      flags: 0,
      replyTo: 0,
      allowMissingReply: false,
    });
    return viewMessage(sent, { isBot: false, bot: botProfile(bot, user.languageCode) }, store.time);
  },
});
