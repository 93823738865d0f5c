import { z } from 'zod';
import { botChat, botChatErrors } from '../../actions/bot_chats.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { isDirect } from '../../store/core/keys.js';
import { done } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

export const deleteChatPhoto = defineMethod({
  name: 'deleteChatPhoto',
  effect: 'configure',
  summary: 'Removes the photo of a group or channel.',
  params: z.object({ chat_id: chatId }),
  errors: [...botChatErrors, 'private_chat_photo', 'photo_not_allowed', 'chat_not_modified'],
  result: done,
  handler: async ({ bot, store }, p) => {
    const { chat } = await botChat(store, bot, p.chat_id);
    if (isDirect(chat)) fail('private_chat_photo');
    await store.chats.setPhoto(chat, { id: bot.id, is_bot: true }, null, []);
    return true;
  },
});
