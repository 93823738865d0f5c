import { limits } from '../../src/limits.js';
import { messageKinds, pack, packMessageTail } from '../../src/store/core/codec.js';
import { type ChatRef, chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import {
  bot,
  direct,
  group,
  incarnation,
  keys,
  partitionOf,
  type Seed,
  seconds,
  seeds,
  user,
} from './world.js';

export const id = 7;
export const at = (chat: ChatRef) => {
  const partition = partitionOf(chat);
  const member = keys.member(chat.id, user);
  return {
    ...{ meta: keys.meta(partition), journal: keys.journal(partition), outbox: keys.outbox(partition) },
    ...{ chat: keys.chat(chat), ticket: keys.ticket(keys.chat(chat)), request: keys.request(partition, 'r') },
    ...{ changes: keys.changes(chat), channel: keys.chatChannel(chat) },
    ...{ message: keys.message(chat, id), message_ticket: keys.ticket(keys.message(chat, id)) },
    granted: keys.grantedEdits(chat, id),
    ...{ pending: keys.pendingEdits(partition), edits_due: keys.editsDue(partition) },
    ...{ queue_state: keys.queueState(bot), queue: keys.queue(bot), bot_channel: keys.botChannel(bot) },
    due: keys.webhooksDue(partitionOf(direct)),
    ...{
      member,
      member_ticket: keys.ticket(member),
      sibling: keys.messages(chat),
      post: keys.postRoot(partition),
      acted: keys.actedRoot(partition),
    },
  };
};
export const prefixed = (chat: ChatRef) => ({ ...at(chat), message: keys.messages(chat) });
export const tail = packMessageTail({
  sender: user,
  kind: 1,
  flags: 0,
  content: { text: 'new' },
  markup: null,
  origin: {},
});
export const open = (chat: ChatRef, fields = {}) => seeds.open(partitionOf(chat), fields);
export const full = (chat: ChatRef, entries = 1): Seed[] => [
  open(chat, { hw: 1 }),
  seeds.stream(keys.journal(partitionOf(chat)), entries),
];
export const old = seconds() - limits.edit_age_ms_max / 1000 - 1;
export const deleted = { kind: messageKinds.deleted };
export const asGroup = ['chat:-100777', 'changes:-100777', 'journal', 'meta', 'req:r'];
export const asDirect = [
  `chat:${chatText(direct)}`,
  `changes:${chatText(direct)}`,
  'journal',
  'meta',
  'req:r',
];
export const inQueue = [`queue:${bot}`, `queue_state:${bot}`];
export const member = (status = 'member', rights = {}) => seeds.member(user, status, rights);
/**
 * Creates an outbox of small entries. The ids of the entries state that `before` bytes of the outbox (64 MiB) were
 * already in use.
 */
export const outboxOfBytes = (before: number, entries: number = limits.outbox_length_small): Seed[] => [
  (client) =>
    client.eval(
      "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], i .. '-' .. ARGV[2], 'k', 'x') end",
      1,
      keys.outbox(partitionOf(group)),
      entries,
      before,
    ),
  (client) => client.hset(keys.meta(partitionOf(group)), 'ow', limits.outbox_bytes_max),
];
export const outboxFull = seeds.stream(keys.outbox(partitionOf(group)), limits.outbox_length_max);

export const sendToUser = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{ script: 'messages/send_to_user', what, keys: prefixed(direct) },
  args: { chat: chatText(direct), keep: 'r', tails: [tail], reply_to: '', token: 'T', ...args },
  ...more,
});
export const sendToBot = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{ script: 'messages/send_to_bot', what, keys: prefixed(direct) },
  args: {
    ...{ chat: chatText(direct), keep: 'r', tails: [tail], reply_to: '', token: 'T' },
    from: pack({ id: user }),
    ...args,
  },
  ...more,
});
export const ready = [open(direct), seeds.chat(direct), seeds.queue()];

export const sendShared = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{ script: 'messages/send_shared', what, keys: prefixed(group) },
  args: {
    chat: '-100777',
    keep: 'r',
    tails: [tail],
    sender: `${user}`,
    reply_to: '',
    from: pack({ id: user }),
    partition: `${partitionOf(group)}`,
    token: 'T',
    ...args,
  },
  ...more,
});
/** A group with two bots. One of these bots makes the calls. */
export const groupOfBots = [open(group), seeds.chat(group, { b: `${bot},${user}` }), member()];
export const groupReady = [open(group), seeds.chat(group, { b: `${bot}` }), member()];

export const poster = member('administrator', { can_post_messages: true });
/** The sequence number of the first post in the partition. */
export const postNumber = 1 + incarnation * limits.incarnation_sequence_skip;
export const post = postNumber * limits.partitions_max + partitionOf(group);
export const inChannel = [open(group), seeds.chat(group, { t: 'channel', b: `${bot}` })];
