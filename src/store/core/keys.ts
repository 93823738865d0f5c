/** Builds all Redis keys. Every key has the hash tag of its partition. The comments name each key's type and bound. */
import { limits } from '../../limits.js';
import { layPartitions, type Partitions } from './partitions.js';

/** Address of a chat: a direct chat by bot and user, any other chat by its (negative) id. */
export interface ChatRef {
  readonly id: number;
  /** The user of a direct chat; 0 for groups and channels. */
  readonly user: number;
}

export const directChat = (bot: number, user: number): ChatRef => ({ id: bot, user });
export const sharedChat = (id: number): ChatRef => ({ id, user: 0 });
export const isDirect = (chat: ChatRef): boolean => chat.user !== 0;

/** Text of a chat in keys: `12.5` for the direct chat of bot 12 and user 5, `-7` for the group or channel -7. */
export const chatText = (chat: ChatRef): string =>
  chat.user === 0 ? `${chat.id}` : `${chat.id}.${chat.user}`;

/** The inverse of `chatText`. */
export function parseChat(text: string): ChatRef {
  const [id, user] = text.split('.');
  return { id: Number(id), user: user === undefined ? 0 : Number(user) };
}

/** A post id contains its channel's partition in the last digits, so the id alone locates the post. */
export const partitionOfPost = (post: number): number => post % limits.partitions_max;
export const postNumber = (post: number): number => Math.floor(post / limits.partitions_max);
export const postId = (partition: number, number: number): number =>
  number * limits.partitions_max + partition;
/** The owner of a set of idempotency keys. All operators share one set, with id 0. */
export interface Caller {
  readonly kind: 'bot' | 'user' | 'admin';
  readonly id: number;
}

export const callerText = ({ kind, id }: Caller): string => `${kind}.${id}`;

export interface Keys {
  readonly partitions: Partitions;
  /** HASH: run, ver, hw, post, post_inc. One per partition, never evicted. */
  meta(partition: number): string;
  /**
   * STREAM of `version-bytes`, where bytes counts what was journaled before: k entity, i image, s state. Bounded by
   * JOURNAL_HIGH_WATER and JOURNAL_BYTES_MAX.
   */
  journal(partition: number): string;
  /**
   * STREAM of `version-bytes`, where bytes counts what was added before: updates for bots of other partitions. Bounded
   * by limits.outbox_length_max and outbox_bytes_max.
   */
  outbox(partition: number): string;
  /** Key prefix, one ZSET per person with open windows: node → expiry (ms). Expires. Bounded by the number of nodes. */
  windowsRoot(partition: number): string;
  /** STRING: the flusher of the partition. Expires. */
  flushLease(partition: number): string;
  /** STRING: the node that removes outdated entities during recovery. Expires. */
  forgetting(partition: number): string;
  /** Key prefixes of all journaled entities, which can be read from Postgres when missing. */
  journaledRoots(partition: number): readonly string[];
  /** STRING: the control record of a bot, with the HMAC of its token. Evicted. */
  bot(bot: number): string;
  /** STRING: the control record of a user, with the HMACs of its tokens. Evicted. */
  user(user: number): string;
  /** STRING: the control record of a user's chats. Evicted. Bounded by limits.chats_per_user_max. */
  memberships(user: number): string;
  /** STRING: the control record of a bot's commands. Evicted. */
  commands(bot: number): string;
  /** STRING: the control record of a bot's descriptions and pictures. Evicted. */
  descriptions(bot: number): string;
  /** STRING: a member of a group or channel, in the chat's partition. Evicted. */
  member(chat: number, who: number): string;
  /** STRING: the creator and administrators of a group or channel. Evicted. Bounded by limits.administrators_per_chat_max. */
  administrators(chat: number): string;
  /** STRING: the public chat with a lower-case username, or none. Evicted. */
  name(partition: number, username: string): string;
  /** STRING: the person of an identity provider's subject, or none, by digest. Evicted. */
  identity(partition: number, digest: string): string;
  /** HASH: a post's message and reaction counts. Evicted. */
  post(post: number): string;
  postRoot(partition: number): string;
  /** Key prefix of a post's recent reactors, one HASH per generation: user → emoji. Evicted. */
  acted(post: number): string;
  actedRoot(partition: number): string;
  memberRoot(partition: number): string;
  /** ZSET of posts by time (ms): posts whose new counts must be sent to the channel's bots. Bounded by the partition's posts. */
  countsDue(partition: number): string;
  /** CHANNEL: hints that a post's reactions changed. */
  postChannel(post: number): string;
  /** HASH: a chat's message sequence, pin, and the copies that its messages need. Evicted. */
  chat(chat: ChatRef): string;
  /** Key prefix of a chat's messages, one STRING each. Evicted. */
  messages(chat: ChatRef): string;
  message(chat: ChatRef, messageId: number): string;
  /** Key prefix of all messages of a partition, followed by chat text and message id. */
  messageRoot(partition: number): string;
  chatRoot(partition: number): string;
  changesRoot(partition: number): string;
  chatChannelRoot(partition: number): string;
  queueRoot(partition: number): string;
  queueStateRoot(partition: number): string;
  /** STREAM of `version-0`: recent changes. Bounded by limits.changes_log_length_max; expires. */
  changes(chat: ChatRef): string;
  /** CHANNEL: hints that a chat changed. */
  chatChannel(chat: ChatRef): string;
  /** CHANNEL: hints that control records of a user or bot changed, including the chat list. */
  userChannel(user: number): string;
  /** STREAM of `update_id-0`. Bounded by limits.queue_length_max and queue_bytes_max. */
  queue(bot: number): string;
  /** HASH: sequence, bytes, mask and poll of a bot's queue. One per bot, never evicted. */
  queueState(bot: number): string;
  /** HASH: source partition → the last forwarded outbox entry. Bounded by the number of partitions. */
  queueMarks(bot: number): string;
  /** CHANNEL: hints that a bot's queue changed. */
  botChannel(bot: number): string;
  /** STRING: the control record of a bot's webhook. Evicted. */
  webhook(bot: number): string;
  /** ZSET of `chat:update_id`: updates that wait behind a failed one. Bounded by the queue. */
  parked(bot: number): string;
  /**
   * ZSET of chats by due time (ms): chats with parked updates. Bounded by the queue; usually few, because a failing
   * receiver is sent no more updates.
   */
  retries(bot: number): string;
  /** HASH of chat: failures of its first parked update. Bounded like `retries`. */
  attempts(bot: number): string;
  /** ZSET of bots by time (ms): webhooks that a worker must check. Bounded by the partition's bots. */
  webhooksDue(partition: number): string;
  /** Key prefix of open callback queries, one STRING each, in the chat's partition. Expires. */
  callbackQueries(partition: number): string;
  /** STRING: the answer of an applied request. Expires after limits.request_id_ttl_ms. */
  request(partition: number, id: string): string;
  /** HASH: a call under an idempotency key, with its sealed answer. Expires after limits.idempotency_ttl_ms. */
  idempotency(caller: Caller, digest: string): string;
  /** ZSET of digests by expiry (ms): a caller's live idempotency keys. Bounded by limits.idempotency_keys_max; expires. */
  idempotencyLive(caller: Caller): string;
  /** STRING, a number: bytes stored for a caller's idempotency keys. Expires after limits.idempotency_ttl_ms. */
  idempotencyBytes(caller: Caller): string;
  /** STRING: time (µs) at which a token bucket is full again. Expires then. */
  rate(partition: number, bucket: string): string;
  /** STRING: a ticket that allows one fill from Postgres. Expires after limits.fill_ticket_ttl_ms. */
  ticket(entityKey: string): string;
  /** HASH: epoch; node → acknowledged epoch and lease end. In partition 0. Bounded by live nodes. */
  authNodes(): string;
  /** STREAM of `epoch-0`: recent revocations. In partition 0. Trimmed by length. */
  authRevoked(): string;
  /** CHANNEL: hints that a token was revoked. */
  authChannel(): string;
  /** HASH of flusher id → last heartbeat. In partition 0. Bounded by live flushers. */
  flushers(): string;
  /** STRING: recent token guesses of a client address. Expires. */
  guesses(partition: number, address: string): string;
  /** HASH of node → last report, with checks of the keys and peppers it has. In partition 0. Bounded by live nodes. */
  rings(): string;
  /** HASH of node → last report and its content. In partition 0. Bounded by live nodes. */
  nodes(): string;
  /** HASH: settings on which all nodes of the installation must agree. In partition 0. */
  installation(): string;
  /** HASH: how far Postgres has committed, which server it is, and its incarnation. In partition 0. One field per shard. */
  postgres(shard?: number): string;
  /**
   * ZSET of lookup values, bot:<id> and user:<id> by time (ms): recent revocations. In partition 0. Bounded by
   * limits.revocations_kept_max and limits.revocation_age_ms_max.
   */
  revoked(): string;
}

/** Builds keys for an installation with `count` partitions. */
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
