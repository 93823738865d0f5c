/** Sets of keys that several scripts take, under the names that their headers use. */
import type { ChatRef, Keys } from './keys.js';

/** What a change of a chat touches. */
export function chatKeys(keys: Keys, chat: ChatRef, request: string) {
  const partition = keys.partitions.of(chat.id);
  const key = keys.chat(chat);
  return {
    meta: keys.meta(partition),
    journal: keys.journal(partition),
    chat: key,
    ticket: keys.ticket(key),
    request: keys.request(partition, request),
    changes: keys.changes(chat),
    channel: keys.chatChannel(chat),
  };
}

/** The queue of the bot of a direct chat, which lives in the chat's partition. */
export const queueKeys = (keys: Keys, bot: number) => ({
  queue_state: keys.queueState(bot),
  queue: keys.queue(bot),
  bot_channel: keys.botChannel(bot),
});

/** What a change of a group touches besides: who makes it, and the outbox to its bots. */
export function memberKeys(keys: Keys, chat: ChatRef, who: number) {
  const member = keys.member(chat.id, who);
  return {
    outbox: keys.outbox(keys.partitions.of(chat.id)),
    member,
    member_ticket: keys.ticket(member),
  };
}
