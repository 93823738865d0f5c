import { z } from 'zod';
import { botChat, profileOf } from '../../actions/bot_chats.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import type { Profile } from '../../store/core/codec.js';
import { type ChatRef, isDirect } from '../../store/core/keys.js';
import type { Store } from '../../store/store.js';
import { viewMember } from '../../view/members.js';
import { botChatMember } from '../../wire/results.js';
import { chatId, integer } from '../../wire/schema.js';

/** The profile of someone who was never in the chat: any bot, or a person who shares another chat with the caller. */
async function outsider(store: Store, bot: number, chat: ChatRef, id: number): Promise<Profile | null> {
  const found = await profileOf(store, id);
  if (found === null || found.bot === 1) return found;
  return (await store.chats.acquaintances(bot, chat, [id])).has(id) ? found : null;
}

/** Status and rights of a user in a chat of the bot. Someone who was never a member has status `left`. */
export const getChatMember = defineMethod({
  name: 'getChatMember',
  effect: 'read',
  summary: 'Returns a chat member with status and rights.',
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
    const inside = p.user_id === bot.id || p.user_id === chat.user;
    const member = isDirect(chat)
      ? ({ status: inside ? 'member' : 'none', rights: {} } as const)
      : await store.chats.member(chat, p.user_id);
    const profile =
      (member.status === 'none'
        ? await outsider(store, bot.id, chat, p.user_id)
        : await profileOf(store, p.user_id)) ?? fail('chat_member_not_found');
    return viewMember(profile, member, isDirect(chat) ? undefined : found.profile.t);
  },
});
