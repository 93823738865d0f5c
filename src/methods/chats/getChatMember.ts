import { z } from 'zod';
import { botChat, profileOf } from '../../api/bot_chats.js';
import { defineMethod } from '../../api/method.js';
import { botChatMember } from '../../api/results.js';
import { chatId, integer } from '../../api/schema.js';
import { fail } from '../../errors.js';
import { isDirect } from '../../store/core/keys.js';
import { viewMember } from '../../view/members.js';

/** What someone is in a chat that the bot is in; who never was there counts as one who left. */
export const getChatMember = defineMethod({
  name: 'getChatMember',
  summary: 'Tells what someone is and may do in a chat.',
  params: z.object({ chat_id: chatId, user_id: integer().describe('Id of a person or a bot') }),
  errors: [
    'chat_id_empty',
    'chat_not_found',
    'not_group_member',
    'not_channel_member',
    'chat_member_not_found',
  ],
  result: botChatMember,
  handler: async ({ bot, store }, p) => {
    const { chat, found } = await botChat(store, bot, p.chat_id);
    const profile = (await profileOf(store, p.user_id)) ?? fail('chat_member_not_found');
    if (isDirect(chat)) {
      const inside = p.user_id === bot.id || p.user_id === chat.user;
      return viewMember(profile, { status: inside ? 'member' : 'left', rights: {} }, undefined);
    }
    return viewMember(profile, await store.chats.member(chat, p.user_id), found.profile.t);
  },
});
