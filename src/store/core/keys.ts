/**
 * Builds all Redis keys. Every key has the hash tag of its partition. Each comment gives the type, the content and the
 * bound of a key. "May be evicted" means that Redis may lose the key, because its content is in Postgres too.
 */
import { ruleLimits as limits } from '../../rules/limits.js';
import { layPartitions, type Partitions } from './partitions.js';
import { botOf } from './queue_ids.js';

/** Identifies a chat. A direct chat has a bot and a user. Any other chat has a negative id. */
export interface ChatRef {
  readonly id: number;
  /** The user of a direct chat, or 0 for groups and channels. */
  readonly user: number;
}

export const directChat = (bot: number, user: number): ChatRef => ({ id: bot, user });
export const sharedChat = (id: number): ChatRef => ({ id, user: 0 });
export const isDirect = (chat: ChatRef): boolean => chat.user !== 0;

/** Returns a chat as text for keys: `12.5` is the direct chat of bot 12 and user 5, `-7` is the group or channel -7. */
export const chatText = (chat: ChatRef): string =>
  chat.user === 0 ? `${chat.id}` : `${chat.id}.${chat.user}`;

export function parseChat(text: string): ChatRef {
  const [id, user] = text.split('.');
  return { id: Number(id), user: user === undefined ? 0 : Number(user) };
}

/**
 * Returns the partition of a post. The last digits of a post id are the partition of its channel, so the id alone is
 * enough.
 */
export const partitionOfPost = (post: number): number => post % limits.partitions_max;
export const postNumber = (post: number): number => Math.floor(post / limits.partitions_max);
export const postId = (partition: number, number: number): number =>
  number * limits.partitions_max + partition;
/** The owner of idempotency keys. All operators together are the owner 0. */
export interface Caller {
  readonly kind: 'bot' | 'user' | 'admin';
  readonly id: number;
}

export const callerText = ({ kind, id }: Caller): string => `${kind}.${id}`;

/** Builds the keys of an installation. The builders are functions, so that callers can pass them as arguments. */
export class Keys {
  readonly partitions: Partitions;

  constructor(count: number) {
    this.partitions = layPartitions(count);
  }

  readonly #at = (partition: number) => this.partitions.tag(partition);
  /** Returns the prefix shared by all keys of a user, bot or chat. */
  readonly #near = (id: number) => this.#at(this.partitions.of(id));
  /** Returns the prefix shared by all keys of a queue. The queue belongs to a bot or to a route (`queue_ids.ts`). */
  readonly #of = (queue: number) => this.#at(this.partitions.of(botOf(queue)));

  /**
   * HASH: the state of a partition, for example its run id and its last version. `redis_state.ts` lists the fields. One
   * per partition, never evicted.
   */
  readonly meta = (p: number) => `${this.#at(p)}:meta`;
  /**
   * STREAM of entries with the fields k (entity), i (image) and s (state). The id of an entry is `version-bytes`, where
   * `bytes` is the number of bytes journaled before this entry. Bounded by JOURNAL_HIGH_WATER and JOURNAL_BYTES_MAX.
   */
  readonly journal = (p: number) => `${this.#at(p)}:journal`;
  /**
   * STREAM of updates for bots in other partitions. The id of an entry is `version-bytes`, where `bytes` is the number
   * of bytes added before this entry. Bounded by limits.outbox_length_max and outbox_bytes_max.
   */
  readonly outbox = (p: number) => `${this.#at(p)}:outbox`;
  /**
   * The key prefix for people with open browser windows. Each key is a ZSET of nodes, scored by expiry (ms). Expires.
   * Bounded by the number of nodes.
   */
  readonly windowsRoot = (p: number) => `${this.#at(p)}:windows:`;
  /** STRING: the id of the flusher that reads the partition's journal. Expires. */
  readonly flushLease = (p: number) => `${this.#at(p)}:flush_lease`;
  /**
   * STRING: the id of the node that removes outdated messages, chats, posts and polls from Redis while the partition
   * recovers. Expires.
   */
  readonly forgetting = (p: number) => `${this.#at(p)}:forgetting`;
  /** The key prefixes of all journaled entities. Missing entities can be loaded from Postgres. */
  readonly journaledRoots = (p: number): readonly string[] =>
    ['msg', 'chat', 'post', 'acted', 'poll', 'voted'].map((kind) => `${this.#at(p)}:${kind}:`);
  /** STRING: the control record of a bot, with the HMAC of its token. May be evicted. */
  readonly bot = (bot: number) => `${this.#near(bot)}:bot:${bot}`;
  /** STRING: the control record of a user, with the HMACs of the user's tokens. May be evicted. */
  readonly user = (user: number) => `${this.#near(user)}:user:${user}`;
  /** STRING: the control record of a user's chats. May be evicted. Bounded by limits.chats_per_user_max. */
  readonly memberships = (user: number) => `${this.#near(user)}:memberships:${user}`;
  /** STRING: the control record of a bot's commands. May be evicted. */
  readonly commands = (bot: number) => `${this.#near(bot)}:commands:${bot}`;
  /** STRING: the control record of a bot's descriptions and pictures. May be evicted. */
  readonly descriptions = (bot: number) => `${this.#near(bot)}:descriptions:${bot}`;
  /** STRING: a member of a group or channel, in the chat's partition. May be evicted. */
  readonly member = (chat: number, who: number) => `${this.#near(chat)}:member:${chat}:${who}`;
  /**
   * STRING: the creator and administrators of a group or channel. May be evicted. Bounded by
   * limits.administrators_per_chat_max.
   */
  readonly administrators = (chat: number) => `${this.#near(chat)}:administrators:${chat}`;
  /**
   * STRING: the description and photo of a group or channel. May be evicted. Bounded by
   * limits.chat_description_length_max.
   */
  readonly details = (chat: number) => `${this.#near(chat)}:details:${chat}`;
  /**
   * STRING: the id of the person with an identity provider's subject, or a mark that nobody has the subject. The key
   * contains a hash of the subject. May be evicted.
   */
  readonly identity = (p: number, digest: string) => `${this.#at(p)}:identity:${digest}`;
  /**
   * STRING: the id of the public chat with this username, or a mark that there is none. The key contains the username
   * in lower case. May be evicted.
   */
  readonly name = (p: number, username: string) => `${this.#at(p)}:name:${username}`;
  /** HASH: a post's message and reaction counts. May be evicted. */
  readonly post = (post: number) => `${this.#at(partitionOfPost(post))}:post:${post}`;
  readonly postRoot = (p: number) => `${this.#at(p)}:post:`;
  /**
   * The key prefix for the users who recently reacted to a post. They are stored in several generations. Each
   * generation is a HASH from user to emoji. May be evicted.
   */
  readonly acted = (post: number) => `${this.#at(partitionOfPost(post))}:acted:${post}:`;
  readonly actedRoot = (p: number) => `${this.#at(p)}:acted:`;
  /**
   * ZSET of posts with changed reaction counts, scored by the time (ms) at which the channel's bots get the new counts.
   * Bounded by the partition's posts.
   */
  readonly countsDue = (p: number) => `${this.#at(p)}:counts_due`;
  /** HASH: the definition of a poll, its counts and its end. May be evicted. Bounded by limits.poll_options_max. */
  readonly poll = (poll: number) => `${this.#at(partitionOfPost(poll))}:poll:${poll}`;
  readonly pollRoot = (p: number) => `${this.#at(p)}:poll:`;
  /**
   * The key prefix for the people who recently voted in a poll. They are stored in several generations. Each generation
   * is a HASH from user to options. May be evicted.
   */
  readonly voted = (poll: number) => `${this.#at(partitionOfPost(poll))}:voted:${poll}:`;
  /**
   * ZSET of polls to report to their bots, scored by the time (ms) of the report: soon after a change, or when the poll
   * closes. Bounded by the partition's open polls.
   */
  readonly pollsDue = (p: number) => `${this.#at(p)}:polls_due`;
  readonly memberRoot = (p: number) => `${this.#at(p)}:member:`;
  /** CHANNEL: carries a hint when a post's reactions change. */
  readonly postChannel = (post: number) => `${this.#at(partitionOfPost(post))}:on_post:${post}`;
  /** HASH: a chat's message sequence and pin, and copies of the records that its messages need. May be evicted. */
  readonly chat = (chat: ChatRef) => `${this.#near(chat.id)}:chat:${chatText(chat)}`;
  /** The key prefix of a chat's messages. Each message is a STRING. May be evicted. */
  readonly messages = (chat: ChatRef) => `${this.#near(chat.id)}:msg:${chatText(chat)}:`;
  readonly message = (chat: ChatRef, messageId: number) =>
    `${this.#near(chat.id)}:msg:${chatText(chat)}:${messageId}`;
  /** The key prefix of all messages in a partition. The chat as text and the message id follow the prefix. */
  readonly messageRoot = (p: number) => `${this.#at(p)}:msg:`;
  readonly chatRoot = (p: number) => `${this.#at(p)}:chat:`;
  readonly changesRoot = (p: number) => `${this.#at(p)}:changes:`;
  readonly chatChannelRoot = (p: number) => `${this.#at(p)}:on_chat:`;
  readonly queueRoot = (p: number) => `${this.#at(p)}:queue:`;
  readonly consumersRoot = (p: number) => `${this.#at(p)}:consumers:`;
  readonly consumptionRoot = (p: number) => `${this.#at(p)}:consumption:`;
  readonly assignedRoot = (p: number) => `${this.#at(p)}:assigned:`;
  readonly queueStateRoot = (p: number) => `${this.#at(p)}:queue_state:`;
  /** STREAM of a chat's recent changes, with ids `version-0`. Bounded by limits.changes_log_length_max. Expires. */
  readonly changes = (chat: ChatRef) => `${this.#near(chat.id)}:changes:${chatText(chat)}`;
  /**
   * HASH: the draft of a message that a bot is writing in a direct chat. Bounded by limits.content_bytes_max. Expires.
   */
  readonly draft = (chat: ChatRef) => `${this.#near(chat.id)}:draft:${chatText(chat)}`;
  /** CHANNEL: carries hints about a chat: its changes, chat actions and bots' drafts. */
  readonly chatChannel = (chat: ChatRef) => `${this.#near(chat.id)}:on_chat:${chatText(chat)}`;
  /**
   * HASH: a person's unsent texts, keyed by chat. Bounded by limits.person_drafts_max and person_drafts_bytes_max.
   * Expires after limits.person_draft_ttl_ms.
   */
  readonly personDrafts = (user: number) => `${this.#near(user)}:person_drafts:${user}`;
  /**
   * CHANNEL: carries hints about a user or bot: the control record, the chat list, read marks, and a person's drafts.
   */
  readonly userChannel = (user: number) => `${this.#near(user)}:on_user:${user}`;
  /**
   * STREAM of a bot's pending updates, with ids `update_id-0`. Bounded by limits.queue_length_max and queue_bytes_max.
   */
  readonly queue = (queue: number) => `${this.#of(queue)}:queue:${queue}`;
  /**
   * HASH: the state of an update queue, for example its last update id, its size, its mask of update kinds and its
   * current poll. One per bot and route, never evicted.
   */
  readonly queueState = (queue: number) => `${this.#of(queue)}:queue_state:${queue}`;
  /**
   * HASH: the routes of a bot, and for each listed chat the routes that list it. Bounded by limits.routes_max and
   * route_chats_max.
   */
  readonly routes = (bot: number) => `${this.#near(bot)}:routes:${bot}`;
  /**
   * HASH: for each source partition, the last outbox entry that was forwarded to the bot. Bounded by the number of
   * partitions.
   */
  readonly queueMarks = (bot: number) => `${this.#near(bot)}:queue_marks:${bot}`;
  /** CHANNEL: carries a hint when a bot's queue changes. */
  readonly botChannel = (queue: number) => `${this.#of(queue)}:on_bot:${queue}`;
  /** ZSET of a bot's consumers, by the end of their leases (ms). Bounded by limits.consumers_max. Expires. */
  readonly consumers = (bot: number) => `${this.#near(bot)}:consumers:${bot}`;
  /**
   * HASH: the state of a queue that several consumers share. It has the queue's cursor, and for each consumer its poll,
   * its offset and the updates sent to it. Bounded by limits.consumers_max and limits.updates_batch_max. Expires.
   */
  readonly consumption = (queue: number) => `${this.#of(queue)}:consumption:${queue}`;
  /**
   * ZSET of `consumer:update_id:chat`: the first unsent update of each chat. Bounded by the length of the queue.
   * Expires.
   */
  readonly assigned = (bot: number) => `${this.#near(bot)}:assigned:${bot}`;
  /**
   * ZSET of `chat:update_id`: the assigned updates that are not sent yet. Bounded by the length of the queue. Expires.
   */
  readonly unsent = (bot: number) => `${this.#near(bot)}:unsent:${bot}`;
  /**
   * HASH: for each chat, the consumer that holds the chat and the number of the chat's unconfirmed updates. Bounded by
   * the length of the queue. Expires.
   */
  readonly holders = (bot: number) => `${this.#near(bot)}:holders:${bot}`;
  /** STRING: the control record of a bot's webhook. May be evicted. */
  readonly webhook = (bot: number) => `${this.#near(bot)}:webhook:${bot}`;
  /**
   * ZSET of `chat:update_id`: the parked updates. They wait until the first failed update of their chat is retried.
   * Bounded by the length of the queue.
   */
  readonly parked = (queue: number) => `${this.#of(queue)}:parked:${queue}`;
  /**
   * ZSET of chats with parked updates, scored by due time (ms). Bounded by the length of the queue. The set is usually
   * short, because a failing receiver gets no further updates.
   */
  readonly retries = (queue: number) => `${this.#of(queue)}:retries:${queue}`;
  /**
   * HASH: for each chat with parked updates, how often its first parked update has failed. Bounded by the length of the
   * queue.
   */
  readonly attempts = (queue: number) => `${this.#of(queue)}:attempts:${queue}`;
  /**
   * ZSET of bots, scored by the time (ms) at which a worker must check the bot's webhook. Bounded by the partition's
   * bots.
   */
  readonly webhooksDue = (p: number) => `${this.#at(p)}:webhooks_due`;
  /** The key prefix of open callback queries. Each query is a STRING, in the chat's partition. Expires. */
  readonly callbackQueries = (p: number) => `${this.#at(p)}:callback_query:`;
  /** The key prefix of open inline queries. Each query is a STRING, in the bot's partition. Expires. */
  readonly inlineQueries = (p: number) => `${this.#at(p)}:inline_query:`;
  /**
   * The key prefix of answers to inline queries. Each answer is a HASH with the list of results, the query, and the
   * message of each result. Expires. Bounded by limits.inline_answer_bytes_max.
   */
  readonly inlineAnswers = (p: number) => `${this.#at(p)}:inline_answer:`;
  /**
   * The key prefix for finding cached answers by query. The digest of the query follows. Each value is a STRING with
   * the answer's id. Expires.
   */
  readonly inlineCache = (bot: number) => `${this.#near(bot)}:inline_cache:${bot}:`;
  /** LIST of a bot's answers to inline queries, oldest first. Expires. Bounded by limits.inline_answers_max. */
  readonly inlineAnswersOf = (bot: number) => `${this.#near(bot)}:inline_answers:${bot}`;
  /**
   * STRING, a number: the size of a bot's answers to inline queries. Expires. Bounded by
   * limits.inline_answers_bytes_max.
   */
  readonly inlineBytes = (bot: number) => `${this.#near(bot)}:inline_bytes:${bot}`;
  /** CHANNEL: carries the id of an answered inline query. */
  readonly inlineChannel = (bot: number) => `${this.#near(bot)}:on_inline:${bot}`;
  /**
   * STRING, a number: how many extra edits of a message are left. Presses of the message's buttons grant extra edits.
   * Expires after limits.granted_edit_ttl_ms.
   */
  readonly grantedEdits = (chat: ChatRef, messageId: number) =>
    `${this.#near(chat.id)}:granted_edits:${chatText(chat)}:${messageId}`;
  /**
   * HASH: the pending edits by chat and message, and their total size by owner. A pending edit waits until its message
   * may be edited again. Bounded by limits.pending_edits_bytes_max.
   */
  readonly pendingEdits = (p: number) => `${this.#at(p)}:pending_edits`;
  /** ZSET of pending edits (`chat:message`), scored by due time (ms). Bounded by limits.pending_edits_bytes_max. */
  readonly editsDue = (p: number) => `${this.#at(p)}:edits_due`;
  /**
   * STRING: the answer of an applied request, or of up to 16 requests that one script call applied together. Expires
   * after limits.request_id_ttl_ms.
   */
  readonly request = (p: number, id: string) => `${this.#at(p)}:req:${id}`;
  /**
   * HASH: the state of a call under an idempotency key, with its encrypted answer. Expires after
   * limits.idempotency_ttl_ms.
   */
  readonly idempotency = (caller: Caller, digest: string) =>
    `${this.#near(caller.id)}:idempotency:${callerText(caller)}:${digest}`;
  /**
   * STRING, a number: how many bytes are stored for a caller's idempotency keys. Expires after
   * limits.idempotency_ttl_ms.
   */
  readonly idempotencyBytes = (caller: Caller) =>
    `${this.#near(caller.id)}:idempotency_bytes:${callerText(caller)}`;
  /**
   * ZSET of digests of a caller's live idempotency keys, scored by expiry (ms). Bounded by limits.idempotency_keys_max.
   * Expires.
   */
  readonly idempotencyLive = (caller: Caller) =>
    `${this.#near(caller.id)}:idempotency_live:${callerText(caller)}`;
  /** STRING: the time (µs) at which a token bucket is full again. Expires at that time. */
  readonly rate = (p: number, bucket: string) => `${this.#at(p)}:rate:${bucket}`;
  /** STRING: a ticket that allows one fill from Postgres. Expires after limits.fill_ticket_ttl_ms. */
  readonly ticket = (entityKey: string) => `${entityKey}:ticket`;
  /**
   * HASH: the revocation epoch, and for each node the epoch that it acknowledged and the end of its lease. In partition
   * 0. Bounded by live nodes.
   */
  readonly authNodes = () => `${this.#at(0)}:auth_nodes`;
  /** STREAM of recent revocations, with ids `epoch-0`. In partition 0. Trimmed by length. */
  readonly authRevoked = () => `${this.#at(0)}:auth_revoked`;
  /** CHANNEL: carries a hint when a token is revoked. */
  readonly authChannel = () => `${this.#at(0)}:on_auth`;
  /**
   * CHANNEL: carries requests to write the journals of some partitions to Postgres now. Flushers listen. In partition
   * 0.
   */
  readonly flushAsked = () => `${this.#at(0)}:on_flush_asked`;
  /** CHANNEL: announces the flushed versions of journals. In partition 0. */
  readonly flushed = () => `${this.#at(0)}:on_flushed`;
  /** HASH: the last heartbeat of each flusher, keyed by id. In partition 0. Bounded by live flushers. */
  readonly flushers = () => `${this.#at(0)}:flushers`;
  /**
   * STRING: a link preview, in one of limits.link_preview_slots slots. Bounded by limits.link_preview_bytes_max.
   * Expires.
   */
  readonly linkPreview = (p: number, slot: number) => `${this.#at(p)}:link_preview:${slot}`;
  /** STRING: a client address's recent guesses at tokens. Expires. */
  readonly guesses = (p: number, address: string) => `${this.#at(p)}:guesses:${address}`;
  /** HASH: for each node, the check values of its keys and peppers. In partition 0. Bounded by live nodes. */
  readonly rings = () => `${this.#at(0)}:rings`;
  /** HASH: for each node, its last report and the time of this report. In partition 0. Bounded by live nodes. */
  readonly nodes = () => `${this.#at(0)}:nodes`;
  /**
   * HASH: the figures of all nodes for the last hour, in a ring buffer of limits.history_points_max points. In
   * partition 0. Expires after an hour without nodes.
   */
  readonly figures = () => `${this.#at(0)}:figures`;
  /** HASH: settings on which all nodes in the installation must agree. In partition 0. */
  readonly installation = () => `${this.#at(0)}:installation`;
  /**
   * HASH: the last Postgres commit that Redis knows, and the Postgres server with its incarnation. In partition 0. One
   * per shard.
   */
  readonly postgres = (shard: number = 0) => `${this.#at(0)}:postgres${shard === 0 ? '' : `:${shard}`}`;
  /**
   * ZSET: the recent revocations. A member is a lookup value, bot:<id> or user:<id>. The score is the time in ms. In
   * partition 0. Bounded by limits.revocations_kept_max and limits.revocation_age_ms_max.
   */
  readonly revoked = () => `${this.#at(0)}:revoked`;
}

export const makeKeys = (count: number) => new Keys(count);
