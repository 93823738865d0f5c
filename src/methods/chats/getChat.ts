import { z } from 'zod';
import { chatOfBot } from '../../api/compose.js';
import { defineMethod } from '../../api/method.js';
import { chatInfo } from '../../api/results.js';
import { chatId } from '../../api/schema.js';
import { fail } from '../../errors.js';
import { isDirect } from '../../store/keys.js';
import { viewChat } from '../../view/users.js';

/** What every member may do in a group. */
const permissions = {
  can_send_messages: true,
  can_pin_messages: false,
  can_invite_users: false,
  can_edit_messages: false,
  can_delete_messages: false,
};

const present = ['creator', 'administrator', 'member'];

/** A chat that the bot is in (behaviour §4). */
export const getChat = defineMethod({
  name: 'getChat',
  summary: 'Tells about a chat.',
  params: z.object({ chat_id: chatId }),
  errors: ['chat_id_empty', 'chat_not_found', 'not_group_member'],
  result: chatInfo,
  handler: async ({ bot, store }, p) => {
    const chat = chatOfBot(bot.id, p.chat_id);
    const found = await store.chats.find(chat);
    if (!found) return fail('chat_not_found');
    const view = viewChat(found.profile);
    if (isDirect(chat)) return view;
    const { status } = await store.chats.member(chat, bot.id);
    if (!present.includes(status)) fail('not_group_member');
    return { ...view, permissions, member_count: found.profile.m };
  },
});
