/**
 * Sets of keys that several scripts use, named as in their headers. They are built for every call, so each set is
 * created as one object; scripts ignore keys that they do not need.
 */
import { type ChatRef, type Keys, partitionOfPost } from './keys.js';

/** Keys for changing a direct chat: the chat, and its bot's queue in the same partition. */
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

/** Keys for changing a group or channel: the chat, the member who changes it, and the outbox to its bots. */
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
 * Adds the keys of the affected message; the prefix of all messages becomes `sibling`. Modifies `set`, which must be
 * newly built, because copying costs several times more than building it.
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

/** Keys of a post's scripts: the post, its reactors, and the chat and member for the permission check. */
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
