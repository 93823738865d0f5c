/**
 * Builds sets of keys that several scripts need, named as in the headers of the scripts. Each set is one object,
 * because a set is built for every call. A script ignores keys that it does not need.
 */
import { type ChatRef, type Keys, partitionOfPost } from './keys.js';
import { botOf } from './queue_ids.js';

/**
 * Returns the keys for a bot's message to a user. Leaves out the keys of the bot's queue, because a bot gets no update
 * about its own message.
 */
export function toUserKeys(keys: Keys, chat: ChatRef, request: string) {
  const partition = keys.partitions.of(chat.id);
  return {
    meta: keys.meta(partition),
    journal: keys.journal(partition),
    chat: keys.chat(chat),
    request: keys.request(partition, request),
    changes: keys.changes(chat),
    channel: keys.chatChannel(chat),
    message: keys.messages(chat),
  };
}

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

/** Returns the keys for a change of a bot's draft. The bot gets no update about this change. */
export function shownDraftKeys(keys: Keys, chat: ChatRef) {
  const record = keys.chat(chat);
  return {
    meta: keys.meta(keys.partitions.of(chat.id)),
    chat: record,
    ticket: keys.ticket(record),
    channel: keys.chatChannel(chat),
    draft: keys.draft(chat),
  };
}

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

/** Returns the keys of a bot's or a route's queue. */
export function queueKeys(keys: Keys, queue: number) {
  const partition = keys.partitions.of(botOf(queue));
  return {
    meta: keys.meta(partition),
    journal: keys.journal(partition),
    state: keys.queueState(queue),
    queue: keys.queue(queue),
    parked: keys.parked(queue),
    retries: keys.retries(queue),
    attempts: keys.attempts(queue),
    due: keys.webhooksDue(partition),
    channel: keys.botChannel(queue),
  };
}

interface OfMessage {
  message: string;
  message_ticket: string;
  sibling: string;
  granted: string;
}

/**
 * Adds the keys of the affected message to `set`, and renames the prefix of all message keys from `message` to
 * `sibling`. Modifies `set` and returns it, because a copy would cost several times more. The caller must therefore
 * have just created `set`.
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
  made.granted = keys.grantedEdits(chat, messageId);
  return made;
}

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

export function pollKeys(keys: Keys, poll: number) {
  const partition = partitionOfPost(poll);
  const key = keys.poll(poll);
  return {
    meta: keys.meta(partition),
    journal: keys.journal(partition),
    outbox: keys.outbox(partition),
    poll: key,
    poll_ticket: keys.ticket(key),
    voted: keys.voted(poll),
    due: keys.pollsDue(partition),
  };
}
