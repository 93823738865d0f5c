import { z } from 'zod';
import { botChat, botChatErrors, profileOf } from '../../actions/bot_chats.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { isDirect } from '../../store/core/keys.js';
import { viewMember } from '../../view/members.js';
import { botChatMembers } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

/** Lists the administrators of a chat. Includes the calling bot if it is an administrator, but no other bots. */
export const getChatAdministrators = defineMethod({
  name: 'getChatAdministrators',
  effect: 'read',
  summary: 'Lists the creator and the administrators of a chat.',
  params: z.object({ chat_id: chatId }),
  errors: [...botChatErrors, 'private_chat_administrators'],
  result: botChatMembers,
  handler: async ({ bot, store }, p) => {
    const { chat, found } = await botChat(store, bot, p.chat_id);
    if (isDirect(chat)) fail('private_chat_administrators');
    const list = await store.chats.administrators(chat);
    const shown = await Promise.all(
      list
        .filter(({ id, isBot }) => !isBot || id === bot.id)
        .map(async (member) => {
          const profile = await profileOf(store, member.id);
          return profile && viewMember(profile, member, found.profile.t, bot.id);
        }),
    );
    return shown.filter((member) => member !== null);
  },
});
