import { z } from 'zod';
import { botChat, botChatErrors } from '../../actions/bot_chats.js';
import { chatPermissions } from '../../actions/moderation.js';
import { fail } from '../../errors.js';
import { fullPermissions, packPermissions } from '../../rules/permissions.js';
import { defineMethod } from '../../server/method.js';
import { isDirect } from '../../store/core/keys.js';
import { done } from '../../wire/results.js';
import { boolean, chatId, optional } from '../../wire/schema.js';

/** Sets the default permissions. They do not apply to administrators. */
export const setChatPermissions = defineMethod({
  name: 'setChatPermissions',
  effect: 'configure',
  summary: 'Sets the default permissions of group members.',
  params: z.object({
    chat_id: chatId,
    permissions: chatPermissions,
    use_independent_chat_permissions: optional(boolean),
  }),
  errors: [...botChatErrors, 'private_chat_permissions', 'channel_permissions', 'permissions_not_allowed'],
  result: done,
  handler: async ({ bot, store }, p) => {
    const { chat, found } = await botChat(store, bot, p.chat_id);
    if (isDirect(chat)) fail('private_chat_permissions');
    if (found.kind !== 'group') fail('channel_permissions');
    const permissions = fullPermissions(p.permissions, p.use_independent_chat_permissions === true);
    await store.chats.setPermissions(chat, { id: bot.id, is_bot: true }, packPermissions(permissions));
    return true;
  },
});
