import { z } from 'zod';
import { botChat, profileOf } from '../../actions/bot_chats.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { isDirect } from '../../store/core/keys.js';
import { viewMember } from '../../view/members.js';
import { botChatMembers } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

/** Lists the people who manage a chat, and the bot itself if it does. Bots do not see other bots. */
export const getChatAdministrators = defineMethod({
  name: 'getChatAdministrators',
  effect: 'read',
  summary: 'Lists the creator and the administrators of a chat.',
  params: z.object({ chat_id: chatId }),
  errors: [
    'chat_id_empty',
    'chat_not_found',
    'not_group_member',
    'not_channel_member',
    'private_chat_administrators',
  ],
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
          return profile && viewMember(profile, member, found.profile.t);
        }),
    );
    return shown.filter((member) => member !== null);
  },
});
