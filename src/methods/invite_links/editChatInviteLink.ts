import { z } from 'zod';
import {
  invitingChat,
  linkParam,
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

export const editChatInviteLink = defineMethod({
  name: 'editChatInviteLink',
  effect: 'configure',
  summary:
    'Replaces all settings of an invite link that the bot created. A setting that is absent from the call is removed.',
  params: z.object({ chat_id: chatId, invite_link: linkParam, ...linkSettings }),
  errors: [
    ...manageErrors,
    ...linkSettingErrors,
    'invite_link_empty',
    'invite_link_expired',
    'invite_link_primary',
  ],
  result: inviteLink,
  handler: async ({ bot, store }, p) => {
    const settings = settingsOf(p);
    const chat = await invitingChat(store, bot, p.chat_id, managing);
    const name = { code: p.invite_link };
    return viewLink(store, await store.chats.editLink(chat, bot.id, name, settings));
  },
});
