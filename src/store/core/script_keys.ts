/**
 * Sets of keys that several scripts take, under the names that their headers use. They are spelled on every call, so each
 * set is made at once as one object; a script ignores the keys that it has no use for.
 */
import { type ChatRef, type Keys, partitionOfPost } from './keys.js';

/** What a change of a direct chat touches: the chat, and the queue of its bot, which lives beside it. */
export function directKeys(keys: Keys, chat: ChatRef, request: string) {
  const partition = keys.partitions.of(chat.id);
  const record = keys.chat(chat);
  return {
    meta: keys.meta(partition),
    journal: keys.journal(partition),
    chat: record,
    ticket: keys.ticket(record),
    request: keys.request(partition, request),
    changes: keys.changes(chat),
    channel: keys.chatChannel(chat),
    queue_state: keys.queueState(chat.id),
    queue: keys.queue(chat.id),
    bot_channel: keys.botChannel(chat.id),
    due: keys.webhooksDue(partition),
    message: keys.messages(chat),
  };
}

/** What a change of a group touches: the chat, who makes it, and the outbox to the group's bots. */
export function sharedKeys(keys: Keys, chat: ChatRef, request: string, who: number) {
  const partition = keys.partitions.of(chat.id);
  const record = keys.chat(chat);
  const member = keys.member(chat.id, who);
  return {
    meta: keys.meta(partition),
    journal: keys.journal(partition),
    chat: record,
    ticket: keys.ticket(record),
    request: keys.request(partition, request),
    changes: keys.changes(chat),
    channel: keys.chatChannel(chat),
    outbox: keys.outbox(partition),
    member,
    member_ticket: keys.ticket(member),
    message: keys.messages(chat),
    post: keys.postRoot(partition),
    acted: keys.actedRoot(partition),
  };
}

interface OfMessage {
  message: string;
  message_ticket: string;
  sibling: string;
}

/**
 * The message that a call is about, in place of the prefix of all messages, which becomes `sibling`. It goes into the set itself,
 * which must be new: a copy costs several times what spelling the keys does.
 */
export function withMessage<K extends { readonly message: string }>(
  keys: Keys,
  set: K,
  chat: ChatRef,
  messageId: number,
): K & Readonly<OfMessage> {
  const made = set as K & OfMessage;
  made.sibling = set.message;
  made.message = keys.message(chat, messageId);
  made.message_ticket = keys.ticket(made.message);
  return made;
}

/** What a post's own scripts touch: the post, who reacted, and the chat and member that say who may. */
export function postKeys(keys: Keys, post: number) {
  const partition = partitionOfPost(post);
  const key = keys.post(post);
  return {
    meta: keys.meta(partition),
    journal: keys.journal(partition),
    post: key,
    post_ticket: keys.ticket(key),
    acted: keys.acted(post),
    chat: keys.chatRoot(partition),
    member: keys.memberRoot(partition),
    channel: keys.postChannel(post),
    due: keys.countsDue(partition),
  };
}
