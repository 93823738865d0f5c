import { z } from 'zod';
import { botChat, botChatErrors } from '../../actions/bot_chats.js';
import { chatOfBot } from '../../actions/compose.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { isDirect } from '../../store/core/keys.js';
import { chatId } from '../../wire/schema.js';

export const leaveChat = defineMethod({
  name: 'leaveChat',
  effect: 'configure',
  summary: 'Leaves a group or channel.',
  params: z.object({ chat_id: chatId }),
  errors: [...botChatErrors, 'private_chat_members'],
  handler: async ({ bot, store }, p) => {
    const chat = chatOfBot(bot.id, p.chat_id);
    await store.unlessApplied(async () => {
      await botChat(store, bot, p.chat_id);
      if (isDirect(chat)) fail('private_chat_members');
    });
    await store.chats.putMember(chat, { id: bot.id, is_bot: true }, 'left', {});
  },
});
