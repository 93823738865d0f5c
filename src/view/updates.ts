/** Builds updates for polling and webhooks (interface §2, behaviour §9). */
import { createHash } from 'node:crypto';
import { viewPoll } from '../content/poll.js';
import type { MemberChange } from '../store/chats/members.js';
import type { Profile } from '../store/core/codec.js';
import type { PressExtra, UpdateEntry } from '../store/updates/queues.js';
import type { Time } from '../time.js';
import { viewInviteLink } from './invite_links.js';
import { viewMember } from './members.js';
import { viewMessage } from './messages.js';
import { viewChat, viewStranger, viewUser } from './users.js';

/**
 * Returns the `chat_instance` of a callback query. It identifies a chat and never changes. It is a hash, so it does not
 * reveal the chat's id.
 */
function chatInstance(chat: { readonly id: number; readonly user: number }): string {
  return createHash('sha256').update(`${chat.id}.${chat.user}`).digest().readBigInt64BE().toString();
}

function viewMemberChange({ message, from }: UpdateEntry, bot: Profile): Readonly<Record<string, unknown>> {
  const { peer, record } = message;
  const { who, was, became, link } = record.origin.service as unknown as MemberChange;
  return {
    chat: viewChat(peer),
    from: viewUser(from),
    date: record.date,
    old_chat_member: viewMember(who, was, peer.t, bot.id),
    new_chat_member: viewMember(who, became, peer.t, bot.id),
    ...(link ? { invite_link: viewInviteLink(link, bot.id) } : {}),
  };
}

function viewJoinRequest({ message, from }: UpdateEntry, bot: Profile): Readonly<Record<string, unknown>> {
  const { peer, record } = message;
  const { link } = record.origin.service as unknown as MemberChange;
  return {
    chat: viewChat(peer),
    from: viewStranger(from),
    user_chat_id: from.id,
    date: record.date,
    ...(link ? { invite_link: viewInviteLink(link, bot.id) } : {}),
  };
}

function viewCounts({ message, counts }: UpdateEntry): Readonly<Record<string, unknown>> {
  return {
    chat: viewChat(message.peer),
    message_id: message.id,
    date: message.record.date,
    reactions: counts?.map(({ emoji, count }) => ({ type: { type: 'emoji', emoji }, total_count: count })),
  };
}

const viewAnswer = ({ id, from }: UpdateEntry, options: readonly number[]) => ({
  poll_id: id,
  user: viewUser(from),
  option_ids: options,
  option_persistent_ids: options.map(String),
});

/** Builds a `CallbackQuery`. For an inline message, the bot does not see the chat. */
const viewPress = (
  { id, from, message }: UpdateEntry,
  { data, inline }: PressExtra,
  bot: Profile,
  time: Time,
) => ({
  id,
  from: viewUser(from),
  ...(inline === undefined
    ? {
        message: viewMessage(message, { isBot: true, bot }, time),
        chat_instance: chatInstance(message.chat),
      }
    : { inline_message_id: inline.id, chat_instance: inline.instance }),
  data,
});

export function viewUpdate(update: UpdateEntry, bot: Profile, time: Time): Readonly<Record<string, unknown>> {
  if (update.kind === 'my_chat_member' || update.kind === 'chat_member')
    return { update_id: update.updateId, [update.kind]: viewMemberChange(update, bot) };
  if (update.kind === 'chat_join_request')
    return { update_id: update.updateId, [update.kind]: viewJoinRequest(update, bot) };
  if (update.kind === 'message_reaction_count')
    return { update_id: update.updateId, [update.kind]: viewCounts(update) };
  if (update.poll)
    return { update_id: update.updateId, poll: viewPoll(update.poll, false, bot.id, time.nowSeconds()) };
  if (update.answer) return { update_id: update.updateId, poll_answer: viewAnswer(update, update.answer) };
  if (update.question)
    return {
      update_id: update.updateId,
      inline_query: { id: update.id, from: viewUser(update.from), ...update.question },
    };
  if (update.choice)
    return {
      update_id: update.updateId,
      chosen_inline_result: { from: viewUser(update.from), ...update.choice },
    };
  if (update.kind === 'stopped_message_generation')
    return {
      update_id: update.updateId,
      stopped_message_generation: { chat: viewChat(update.message.peer), draft_id: Number(update.id) },
    };
  if (update.press)
    return { update_id: update.updateId, callback_query: viewPress(update, update.press, bot, time) };
  return {
    update_id: update.updateId,
    [update.kind]: viewMessage(update.message, { isBot: true, bot }, time),
  };
}
