import { z } from 'zod';
import { botChat } from '../../actions/bot_chats.js';
import { defineMethod } from '../../server/method.js';
import { memberCount } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

/** A direct chat has two members. */
export const getChatMemberCount = defineMethod({
  name: 'getChatMemberCount',
  effect: 'read',
  summary: 'Returns the number of members of a chat.',
  params: z.object({ chat_id: chatId }),
  errors: ['chat_id_empty', 'chat_not_found', 'not_group_member', 'not_channel_member'],
  result: memberCount,
  handler: async ({ bot, store }, p) => {
    const { found } = await botChat(store, bot, p.chat_id);
    return found.profile.m ?? 2;
  },
});
