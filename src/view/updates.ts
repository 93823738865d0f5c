/** Updates as polling and webhooks show them (interface §2, behaviour §9). */
import { createHash } from 'node:crypto';
import type { MemberChange } from '../store/chats/members.js';
import type { Profile } from '../store/core/codec.js';
import type { UpdateEntry } from '../store/updates/queues.js';
import { viewMember } from './members.js';
import { viewMessage } from './messages.js';
import { viewChat, viewUser } from './users.js';

/** Identifies a chat in callback queries: constant for the chat, and a hash that does not reveal its id. */
function chatInstance(chat: { readonly id: number; readonly user: number }): string {
  return createHash('sha256').update(`${chat.id}.${chat.user}`).digest().readBigInt64BE().toString();
}

/** A ChatMemberUpdated. The change is stored in the record's service part. */
function viewMemberChange({ message, from }: UpdateEntry): Readonly<Record<string, unknown>> {
  const { peer, record } = message;
  const { who, was, became } = record.origin.service as unknown as MemberChange;
  return {
    chat: viewChat(peer),
    from: viewUser(from),
    date: record.date,
    old_chat_member: viewMember(who, was, peer.t),
    new_chat_member: viewMember(who, became, peer.t),
  };
}

/** A MessageReactionCountUpdated. */
function viewCounts({ message, counts }: UpdateEntry): Readonly<Record<string, unknown>> {
  return {
    chat: viewChat(message.peer),
    message_id: message.id,
    date: message.record.date,
    reactions: counts?.map(({ emoji, count }) => ({ type: { type: 'emoji', emoji }, total_count: count })),
  };
}

/** One update as its bot receives it. */
export function viewUpdate(update: UpdateEntry, bot: Profile): Readonly<Record<string, unknown>> {
  if (update.kind === 'my_chat_member' || update.kind === 'chat_member')
    return { update_id: update.updateId, [update.kind]: viewMemberChange(update) };
  if (update.kind === 'message_reaction_count')
    return { update_id: update.updateId, [update.kind]: viewCounts(update) };
  const message = viewMessage(update.message, { isBot: true, bot });
  if (update.kind !== 'callback_query' || update.press === null) {
    return { update_id: update.updateId, [update.kind]: message };
  }
  return {
    update_id: update.updateId,
    callback_query: {
      id: update.id,
      from: viewUser(update.from),
      message,
      chat_instance: chatInstance(update.message.chat),
      data: update.press.data,
    },
  };
}
