/** The only place that spells a Redis key. Every key carries the tag of its partition; `bound` says what limits it. */
import { limits } from '../../limits.js';
import { layPartitions, type Partitions } from './partitions.js';

/** A chat as the store addresses it: a direct chat by its bot and its user, any other by its id (negative). */
export interface ChatRef {
  readonly id: number;
  /** The user of a direct chat; 0 for groups and channels. */
  readonly user: number;
}

export const directChat = (bot: number, user: number): ChatRef => ({ id: bot, user });
export const sharedChat = (id: number): ChatRef => ({ id, user: 0 });
export const isDirect = (chat: ChatRef): boolean => chat.user !== 0;

/** `12.5` for the direct chat of bot 12 and user 5, `-7` for the group or channel -7. */
export const chatText = (chat: ChatRef): string =>
  chat.user === 0 ? `${chat.id}` : `${chat.id}.${chat.user}`;

/** The inverse of `chatText`. */
export function parseChat(text: string): ChatRef {
  const [id, user] = text.split('.');
  return { id: Number(id), user: user === undefined ? 0 : Number(user) };
}

/** Ids of posts end in the partition of their channel, so that the id alone finds the post. */
export const partitionOfPost = (post: number): number => post % limits.partitions_max;
export const postNumber = (post: number): number => Math.floor(post / limits.partitions_max);
export const postId = (partition: number, number: number): number =>
  number * limits.partitions_max + partition;
/** Whose idempotency keys are kept apart from those of others; operators share one set, under the id 0. */
export interface Caller {
  readonly kind: 'bot' | 'user' | 'admin';
  readonly id: number;
}

export const callerText = ({ kind, id }: Caller): string => `${kind}.${id}`;

export interface Keys {
  readonly partitions: Partitions;
  /** HASH: run, ver, hw, post, post_inc. One a partition, never evicted. */
  meta(partition: number): string;
  /**
   * STREAM of `version-bytes`, where bytes is what was journaled before it: k entity, i image, s state. Bounded by
   * JOURNAL_HIGH_WATER and JOURNAL_BYTES_MAX.
   */
  journal(partition: number): string;
  /** STREAM of `version-bytes before`: updates for bots of other partitions. Bounded by limits.outbox_length_max and outbox_bytes_max. */
  outbox(partition: number): string;
  /** Prefix of the ZSET of each person who has a window open: node → until (ms). Expires. Bounded by the nodes. */
  windowsRoot(partition: number): string;
  /** STRING: who flushes the partition now. Expires. */
  flushLease(partition: number): string;
  /** STRING: who takes out of Redis what Postgres has in later versions. Expires. */
  forgetting(partition: number): string;
  /** How the keys of all entities begin that are journaled, and so read back when they are missed. */
  journaledRoots(partition: number): readonly string[];
  /** STRING: the control record of a bot, with the HMAC of its token. Evicted. */
  bot(bot: number): string;
  /** STRING: the control record of a user, with the HMACs of its tokens. Evicted. */
  user(user: number): string;
  /** STRING: the control record of a user's chats. Evicted. Bounded by limits.chats_per_user_max. */
  memberships(user: number): string;
  /** STRING: the control record of a bot's commands. Evicted. */
  commands(bot: number): string;
  /** STRING: the control record of what a bot says of itself besides its name. Evicted. */
  descriptions(bot: number): string;
  /** STRING: a member of a group or channel, in the chat's partition. Evicted. */
  member(chat: number, who: number): string;
  /** STRING: the creator and administrators of a group or channel. Evicted. Bounded by limits.administrators_per_chat_max. */
  administrators(chat: number): string;
  /** STRING: the public chat that a lower-cased username names, or none. Evicted. */
  name(partition: number, username: string): string;
  /** STRING: the person whom the subject of an identity provider means, or none, by its digest. Evicted. */
  identity(partition: number, digest: string): string;
  /** HASH: where a post stands, and how many put which emoji on it. Evicted. */
  post(post: number): string;
  postRoot(partition: number): string;
  /** Prefix of the HASHes of those who reacted to a post lately, by generation: user → emoji. Evicted. */
  acted(post: number): string;
  actedRoot(partition: number): string;
  memberRoot(partition: number): string;
  /** ZSET of post by when (ms): whose counts the bots of its channel are to be told. Bounded by the partition's posts. */
  countsDue(partition: number): string;
  /** CHANNEL: hints that a post's reactions changed. */
  postChannel(post: number): string;
  /** HASH: a chat's sequence, its pin and the copies its messages need. Evicted. */
  chat(chat: ChatRef): string;
  /** Prefix of the STRING of each message of a chat. Evicted. */
  messages(chat: ChatRef): string;
  message(chat: ChatRef, messageId: number): string;
  /** Prefix under which all messages of a partition lie: a chat's text and an id follow. */
  messageRoot(partition: number): string;
  chatRoot(partition: number): string;
  changesRoot(partition: number): string;
  chatChannelRoot(partition: number): string;
  queueRoot(partition: number): string;
  queueStateRoot(partition: number): string;
  /** STREAM of `version-0`: what changed lately. Bounded by limits.changes_log_length_max; expires. */
  changes(chat: ChatRef): string;
  /** CHANNEL: hints that a chat changed. */
  chatChannel(chat: ChatRef): string;
  /** CHANNEL: hints that the control records of a user or bot changed, the list of chats among them. */
  userChannel(user: number): string;
  /** STREAM of `update_id-0`. Bounded by limits.queue_length_max and queue_bytes_max. */
  queue(bot: number): string;
  /** HASH: the sequence, bytes, mask and poller of a bot's queue. One a bot, never evicted. */
  queueState(bot: number): string;
  /** HASH: source partition → the last outbox entry that entered the queue. Bounded by the partitions. */
  queueMarks(bot: number): string;
  /** CHANNEL: hints that a bot's queue changed. */
  botChannel(bot: number): string;
  /** STRING: the control record of a bot's webhook. Evicted. */
  webhook(bot: number): string;
  /** ZSET of `chat:update_id`: updates that wait behind one that failed. Bounded by the queue. */
  parked(bot: number): string;
  /** ZSET of chat by due time (ms): the chats of those updates. Bounded by the queue; few, since a receiver that fails is given
   * no more. */
  retries(bot: number): string;
  /** HASH of chat: tries of its first such update. Bounded as `retries`. */
  attempts(bot: number): string;
  /** ZSET of bot by time (ms): webhooks that somebody must look at. Bounded by the partition's bots. */
  webhooksDue(partition: number): string;
  /** Prefix of the STRING of each open callback query, in the chat's partition. Expires. */
  callbackQueries(partition: number): string;
  /** STRING: the answer of a request that was applied. Expires after limits.request_id_ttl_ms. */
  request(partition: number, id: string): string;
  /** HASH: a call under an idempotency key, with its sealed answer. Expires after limits.idempotency_ttl_ms. */
  idempotency(caller: Caller, digest: string): string;
  /** ZSET of digest by end (ms): the live idempotency keys of a caller. Bounded by limits.idempotency_keys_max; expires. */
  idempotencyLive(caller: Caller): string;
  /** STRING, a number: bytes that the keys of a caller keep. Expires after limits.idempotency_ttl_ms. */
  idempotencyBytes(caller: Caller): string;
  /** STRING: when (µs) a token bucket is full again. Expires then. */
  rate(partition: number, bucket: string): string;
  /** STRING: a miss that may be filled from Postgres. Expires after limits.fill_ticket_ttl_ms. */
  ticket(entityKey: string): string;
  /** HASH: epoch; node → acknowledged epoch and lease end. In partition 0. Bounded by live nodes. */
  authNodes(): string;
  /** STREAM of `epoch-0`: who was revoked. In partition 0. Trimmed by age. */
  authRevoked(): string;
  /** CHANNEL: hints that a token was revoked. */
  authChannel(): string;
  /** HASH of flusher id → when it was last seen. In partition 0. Bounded by live flushers. */
  flushers(): string;
  /** STRING: what a client address guessed lately. Expires. */
  guesses(partition: number, address: string): string;
  /** HASH of node → when it was last seen, and which keys and peppers it holds. In partition 0. Bounded by live nodes. */
  rings(): string;
  /** HASH of node → when it was last seen, and what it tells of itself. In partition 0. Bounded by live nodes. */
  nodes(): string;
  /** HASH: what every node of the installation must agree on. In partition 0. */
  installation(): string;
  /** HASH: how far Postgres has committed, which server it was and its incarnation. In partition 0. One field a shard. */
  postgres(shard?: number): string;
  /** ZSET of lookup values, bot:<id> and user:<id> by time (ms): what was revoked. In partition 0. Bounded by
   * limits.revocations_kept_max and limits.revocation_age_ms_max. */
  revoked(): string;
}

/** Spells keys for an installation of `count` partitions. */
export function makeKeys(count: number): Keys {
  const partitions = layPartitions(count);
  const at = (partition: number) => partitions.tag(partition);
  const near = (id: number) => partitions.tag(partitions.of(id));
  return {
    partitions,
    meta: (p) => `${at(p)}:meta`,
    journal: (p) => `${at(p)}:journal`,
    outbox: (p) => `${at(p)}:outbox`,
    windowsRoot: (p) => `${at(p)}:windows:`,
    flushLease: (p) => `${at(p)}:flush_lease`,
    forgetting: (p) => `${at(p)}:forgetting`,
    journaledRoots: (p) => ['msg', 'chat', 'post', 'acted'].map((kind) => `${at(p)}:${kind}:`),
    bot: (bot) => `${near(bot)}:bot:${bot}`,
    user: (user) => `${near(user)}:user:${user}`,
    memberships: (user) => `${near(user)}:memberships:${user}`,
    commands: (bot) => `${near(bot)}:commands:${bot}`,
    descriptions: (bot) => `${near(bot)}:descriptions:${bot}`,
    member: (chat, who) => `${near(chat)}:member:${chat}:${who}`,
    administrators: (chat) => `${near(chat)}:administrators:${chat}`,
    identity: (p, digest) => `${at(p)}:identity:${digest}`,
    name: (p, username) => `${at(p)}:name:${username}`,
    post: (post) => `${at(partitionOfPost(post))}:post:${post}`,
    postRoot: (p) => `${at(p)}:post:`,
    acted: (post) => `${at(partitionOfPost(post))}:acted:${post}:`,
    actedRoot: (p) => `${at(p)}:acted:`,
    countsDue: (p) => `${at(p)}:counts_due`,
    memberRoot: (p) => `${at(p)}:member:`,
    postChannel: (post) => `${at(partitionOfPost(post))}:on_post:${post}`,
    chat: (chat) => `${near(chat.id)}:chat:${chatText(chat)}`,
    messages: (chat) => `${near(chat.id)}:msg:${chatText(chat)}:`,
    message: (chat, messageId) => `${near(chat.id)}:msg:${chatText(chat)}:${messageId}`,
    messageRoot: (p) => `${at(p)}:msg:`,
    chatRoot: (p) => `${at(p)}:chat:`,
    changesRoot: (p) => `${at(p)}:changes:`,
    chatChannelRoot: (p) => `${at(p)}:on_chat:`,
    queueRoot: (p) => `${at(p)}:queue:`,
    queueStateRoot: (p) => `${at(p)}:queue_state:`,
    changes: (chat) => `${near(chat.id)}:changes:${chatText(chat)}`,
    chatChannel: (chat) => `${near(chat.id)}:on_chat:${chatText(chat)}`,
    userChannel: (user) => `${near(user)}:on_user:${user}`,
    queue: (bot) => `${near(bot)}:queue:${bot}`,
    queueState: (bot) => `${near(bot)}:queue_state:${bot}`,
    queueMarks: (bot) => `${near(bot)}:queue_marks:${bot}`,
    botChannel: (bot) => `${near(bot)}:on_bot:${bot}`,
    webhook: (bot) => `${near(bot)}:webhook:${bot}`,
    parked: (bot) => `${near(bot)}:parked:${bot}`,
    retries: (bot) => `${near(bot)}:retries:${bot}`,
    attempts: (bot) => `${near(bot)}:attempts:${bot}`,
    webhooksDue: (p) => `${at(p)}:webhooks_due`,
    callbackQueries: (p) => `${at(p)}:callback_query:`,
    request: (p, id) => `${at(p)}:req:${id}`,
    idempotency: (caller, digest) => `${near(caller.id)}:idempotency:${callerText(caller)}:${digest}`,
    idempotencyBytes: (caller) => `${near(caller.id)}:idempotency_bytes:${callerText(caller)}`,
    idempotencyLive: (caller) => `${near(caller.id)}:idempotency_live:${callerText(caller)}`,
    rate: (p, bucket) => `${at(p)}:rate:${bucket}`,
    ticket: (entityKey) => `${entityKey}:ticket`,
    authNodes: () => `${at(0)}:auth_nodes`,
    authRevoked: () => `${at(0)}:auth_revoked`,
    authChannel: () => `${at(0)}:on_auth`,
    flushers: () => `${at(0)}:flushers`,
    guesses: (p, address) => `${at(p)}:guesses:${address}`,
    rings: () => `${at(0)}:rings`,
    nodes: () => `${at(0)}:nodes`,
    installation: () => `${at(0)}:installation`,
    postgres: (shard = 0) => `${at(0)}:postgres${shard === 0 ? '' : `:${shard}`}`,
    revoked: () => `${at(0)}:revoked`,
  };
}
