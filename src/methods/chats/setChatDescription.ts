import { z } from 'zod';
import { botChat, botChatErrors } from '../../actions/bot_chats.js';
import { chatDescription } from '../../actions/chat_info.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { isDirect } from '../../store/core/keys.js';
import { done } from '../../wire/results.js';
import { chatId, optional } from '../../wire/schema.js';

/** Sets the description of a chat. An empty or absent `description` removes it. */
export const setChatDescription = defineMethod({
  name: 'setChatDescription',
  effect: 'configure',
  summary: 'Changes the description of a group or channel.',
  params: z.object({ chat_id: chatId, description: optional(chatDescription) }),
  errors: [
    ...botChatErrors,
    'private_chat_description',
    'description_too_long',
    'about_not_allowed',
    'about_not_modified',
  ],
  result: done,
  handler: async ({ bot, store }, p) => {
    const { chat } = await botChat(store, bot, p.chat_id);
    if (isDirect(chat)) fail('private_chat_description');
    await store.chats.setDescription(chat, { id: bot.id, is_bot: true }, p.description ?? '');
    return true;
  },
});
