import { z } from 'zod';
import { botChat } from '../../actions/bot_chats.js';
import { botSender } from '../../actions/compose.js';
import { limits } from '../../limits.js';
import { defineMethod } from '../../server/method.js';
import { isDirect } from '../../store/core/keys.js';
import { viewMessage } from '../../view/messages.js';
import { viewChat } from '../../view/users.js';
import { chatInfo } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

/** Rights of every member in a group or channel. */
const permissions = {
  can_send_messages: true,
  can_pin_messages: false,
  can_invite_users: false,
  can_edit_messages: false,
  can_delete_messages: false,
};

/** Fields that typed client libraries require in every chat. Petrel has no such features. */
const unused = {
  accepted_gift_types: {
    unlimited_gifts: false,
    limited_gifts: false,
    unique_gifts: false,
    premium_subscription: false,
    gifts_from_channels: false,
  },
};
const accent_colors = 7;

/** Returns a chat that the bot is in (behaviour §4). */
export const getChat = defineMethod({
  name: 'getChat',
  effect: 'read',
  summary: 'Returns a chat.',
  params: z.object({ chat_id: chatId }),
  errors: ['chat_id_empty', 'chat_not_found', 'not_group_member', 'not_channel_member'],
  result: chatInfo,
  handler: async ({ bot, store }, p) => {
    const { chat, found } = await botChat(store, bot, p.chat_id);
    const profile = viewChat(found.profile);
    const view: Record<string, unknown> = {
      ...profile,
      accent_color_id: Math.abs(Number(profile.id)) % accent_colors,
      max_reaction_count: profile.type === 'channel' ? limits.reactions_per_user_max : 0,
      ...unused,
    };
    const pinned = await store.history.pinned(found);
    if (pinned) view.pinned_message = viewMessage(pinned, { isBot: true, bot: botSender(bot).profile });
    if (isDirect(chat)) return view;
    const may = { ...permissions, can_send_messages: found.kind === 'group' };
    return { ...view, permissions: may, member_count: found.profile.m };
  },
});
