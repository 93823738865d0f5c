import { z } from 'zod';
import { botChat, botChatErrors, profileOf } from '../../actions/bot_chats.js';
import { outsider } from '../../actions/moderation.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { isDirect } from '../../store/core/keys.js';
import { viewMember } from '../../view/members.js';
import { botChatMember } from '../../wire/results.js';
import { chatId, integer } from '../../wire/schema.js';

/**
 * Returns a user's status and rights in one of the bot's chats. A user who was never a member has the status `left`.
 */
export const getChatMember = defineMethod({
  name: 'getChatMember',
  effect: 'read',
  summary: 'Returns the status and the rights of a member of a chat.',
  params: z.object({ chat_id: chatId, user_id: integer().describe('Id of a person or a bot') }),
  errors: [...botChatErrors, 'chat_member_not_found'],
  result: botChatMember,
  handler: async ({ bot, store }, p) => {
    const { chat, found } = await botChat(store, bot, p.chat_id);
    const inside = p.user_id === bot.id || p.user_id === chat.user;
    const member = isDirect(chat)
      ? ({ status: inside ? 'member' : 'none', rights: {} } as const)
      : await store.chats.member(chat, p.user_id);
    const profile =
      (member.status === 'none'
        ? await outsider(store, bot.id, chat, p.user_id)
        : await profileOf(store, p.user_id)) ?? fail('chat_member_not_found');
    return viewMember(profile, member, isDirect(chat) ? undefined : found.profile.t, bot.id);
  },
});
