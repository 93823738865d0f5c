import { z } from 'zod';
import { botChat, botChatErrors } from '../../actions/bot_chats.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { isDirect } from '../../store/core/keys.js';
import { chatTitle } from '../../wire/fields.js';
import { done } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

/** Sets the title. Changes nothing if the chat already has this title. */
export const setChatTitle = defineMethod({
  name: 'setChatTitle',
  effect: 'configure',
  summary: 'Changes the title of a group or channel.',
  params: z.object({ chat_id: chatId, title: chatTitle }),
  errors: [...botChatErrors, 'private_chat_title', 'title_invalid', 'title_not_allowed'],
  result: done,
  handler: async ({ bot, store }, p) => {
    const { chat } = await botChat(store, bot, p.chat_id);
    if (isDirect(chat)) fail('private_chat_title');
    await store.chats.setTitle(chat, { id: bot.id, is_bot: true }, p.title);
    return true;
  },
});
