import { z } from 'zod';
import { botChat, botChatErrors } from '../../actions/bot_chats.js';
import { defineMethod } from '../../server/method.js';
import { memberCount } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

/** Counts the members of a chat. A direct chat has two. */
export const getChatMemberCount = defineMethod({
  name: 'getChatMemberCount',
  effect: 'read',
  summary: 'Returns the number of members of a chat.',
  params: z.object({ chat_id: chatId }),
  errors: botChatErrors,
  result: memberCount,
  handler: async ({ bot, store }, p) => {
    const { found } = await botChat(store, bot, p.chat_id);
    return found.profile.m ?? 2;
  },
});
