import { z } from 'zod';
import { invitingChat, linkParam, manageErrors, managing, viewLink } from '../../actions/invite_links.js';
import { defineMethod } from '../../server/method.js';
import { inviteLink } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

export const revokeChatInviteLink = defineMethod({
  name: 'revokeChatInviteLink',
  effect: 'configure',
  summary:
    'Revokes an invite link that the bot created. If the revoked link is the bot’s primary link, creates a new primary link.',
  params: z.object({ chat_id: chatId, invite_link: linkParam }),
  errors: [...manageErrors, 'invite_link_empty', 'invite_link_expired', 'too_many_invite_links'],
  result: inviteLink,
  handler: async ({ bot, store }, p) => {
    const chat = await invitingChat(store, bot, p.chat_id, managing);
    return viewLink(store, await store.chats.revokeLink(chat, bot.id, { code: p.invite_link }));
  },
});
