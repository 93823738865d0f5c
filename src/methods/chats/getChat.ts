import { z } from 'zod';
import { botChat, botChatErrors } from '../../actions/bot_chats.js';
import { viewChatPhoto } from '../../actions/chat_info.js';
import { botSender } from '../../actions/compose.js';
import { permissionNames, unpackPermissions } from '../../rules/permissions.js';
import { hasRight } from '../../rules/rights.js';
import { defineMethod } from '../../server/method.js';
import { isDirect } from '../../store/core/keys.js';
import { storeLimits as limits } from '../../store/limits.js';
import { viewMessage } from '../../view/messages.js';
import { viewChat } from '../../view/users.js';
import { chatInfo } from '../../wire/results.js';
import { chatId } from '../../wire/schema.js';

const nothing = Object.fromEntries(permissionNames.map((name) => [name, false]));

const notPermitted = { can_edit_messages: false, can_delete_messages: false };

/** Typed client libraries require these fields in every chat. Petrel lacks the features behind them. */
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
  errors: botChatErrors,
  result: chatInfo,
  handler: async ({ bot, store, files }, p) => {
    const { chat, found } = await botChat(store, bot, p.chat_id);
    const profile = viewChat(found.profile);
    const view: Record<string, unknown> = {
      ...profile,
      accent_color_id: Math.abs(Number(profile.id)) % accent_colors,
      max_reaction_count: profile.type === 'channel' ? limits.reactions_per_user_max : 0,
      ...unused,
    };
    const pinned = await store.history.pinned(found);
    if (pinned)
      view.pinned_message = viewMessage(pinned, { isBot: true, bot: botSender(bot).profile }, store.time);
    if (isDirect(chat)) {
      const person = await store.users.find(chat.user);
      return { ...view, ...viewChatPhoto(files, person?.avatar ?? []) };
    }
    const [{ description, photo, permissions, links }, own] = await Promise.all([
      store.chats.details(chat),
      store.chats.member(chat, bot.id),
    ]);
    const code = hasRight(own, 'can_invite_users') ? links[bot.id] : undefined;
    if (code !== undefined) view.invite_link = store.chats.inviteUrl(code);
    if (description !== '') view.description = description;
    Object.assign(view, viewChatPhoto(files, photo));
    const permitted = unpackPermissions(permissions);
    const may = found.kind === 'group' ? permitted : nothing;
    return { ...view, permissions: { ...may, ...notPermitted }, member_count: found.profile.m };
  },
});
