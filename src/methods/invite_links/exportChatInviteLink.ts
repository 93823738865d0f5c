import { z } from 'zod';
import { invitingChat, manageErrors, managing } from '../../actions/invite_links.js';
import { defineMethod } from '../../server/method.js';
import { inviteUrl } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

export const exportChatInviteLink = defineMethod({
  name: 'exportChatInviteLink',
  effect: 'configure',
  summary: 'Replaces the bot’s primary invite link with a new one, and revokes the old one.',
  params: z.object({ chat_id: chatId }),
  errors: [...manageErrors, 'too_many_invite_links'],
  result: inviteUrl,
  handler: async ({ bot, store }, p) => {
    const chat = await invitingChat(store, bot, p.chat_id, managing);
    const { code } = await store.chats.exportLink(chat, bot.id);
    return store.chats.inviteUrl(code);
  },
});
