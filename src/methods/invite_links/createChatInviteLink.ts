import { z } from 'zod';
import {
  invitingChat,
  linkSettingErrors,
  linkSettings,
  manageErrors,
  managing,
  settingsOf,
  viewLink,
} from '../../actions/invite_links.js';
import { defineMethod } from '../../server/method.js';
import { inviteLink } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

export const createChatInviteLink = defineMethod({
  name: 'createChatInviteLink',
  effect: 'configure',
  summary: 'Creates an invite link for a group or channel.',
  params: z.object({ chat_id: chatId, ...linkSettings }),
  errors: [...manageErrors, ...linkSettingErrors, 'too_many_invite_links'],
  result: inviteLink,
  handler: async ({ bot, store }, p) => {
    const settings = settingsOf(p);
    const chat = await invitingChat(store, bot, p.chat_id, managing);
    return viewLink(store, await store.chats.createLink(chat, bot.id, settings));
  },
});
