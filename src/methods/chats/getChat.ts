import { z } from 'zod';
import { botChat } from '../../api/bot_chats.js';
import { botSender } from '../../api/compose.js';
import { defineMethod } from '../../api/method.js';
import { chatInfo } from '../../api/results.js';
import { chatId } from '../../api/schema.js';
import { isDirect } from '../../store/core/keys.js';
import { viewMessage } from '../../view/messages.js';
import { viewChat } from '../../view/users.js';

/** What every member may do in a group or channel. */
const permissions = {
  can_send_messages: true,
  can_pin_messages: false,
  can_invite_users: false,
  can_edit_messages: false,
  can_delete_messages: false,
};

/** A chat that the bot is in (behaviour §4). */
export const getChat = defineMethod({
  name: 'getChat',
  summary: 'Tells about a chat.',
  params: z.object({ chat_id: chatId }),
  errors: ['chat_id_empty', 'chat_not_found', 'not_group_member', 'not_channel_member'],
  result: chatInfo,
  handler: async ({ bot, store }, p) => {
    const { chat, found } = await botChat(store, bot, p.chat_id);
    const view: Record<string, unknown> = { ...viewChat(found.profile) };
    const pinned = await store.history.pinned(found);
    if (pinned) view.pinned_message = viewMessage(pinned, { isBot: true, bot: botSender(bot).profile });
    if (isDirect(chat)) return view;
    const may = { ...permissions, can_send_messages: found.kind === 'group' };
    return { ...view, permissions: may, member_count: found.profile.m };
  },
});
