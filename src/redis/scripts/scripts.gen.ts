/** Generated from the headers below lua/ by `npm run generate`. Do not edit. */

export interface Scripts {
  /** Counts a client address's guess at a token, or returns how long the address must wait before its next guess. */
  'auth/guess': {
    keys: { guesses: string };
    args: { burst: number | string; interval_ms: number | string };
    result:
      | { status: 'ok'; wait: number };
  };
  /** Removes a node that has discarded its cached tokens. */
  'auth/leave': {
    keys: { nodes: string };
    args: { node: string };
    result:
      | { status: 'ok' };
  };
  /** Returns the nodes that have not acknowledged an epoch. Also removes the nodes that the caller found dead. */
  'auth/pending': {
    keys: { meta: string; nodes: string };
    args: { epoch: number | string; incarnation: number | string; gone: readonly (string)[] };
    result:
      | { status: 'ok'; pending: number; late: string[] }
      | { status: 'stale_run' };
  };
  /** Renews a node's lease on its cached tokens, and records which epoch the node has acknowledged. */
  'auth/renew': {
    keys: { meta: string; nodes: string; revoked: string };
    args: { node: string; known: number | string; acked: number | string; lease_ms: number | string };
    result:
      | { status: 'ok'; incarnation: number; epoch: number; subjects: string[] }
      | { status: 'stale_run' };
  };
  /** Raises the revocation epoch for users and bots. The caller has already committed the revocation to Postgres. */
  'auth/revoke': {
    keys: { meta: string; nodes: string; revoked: string; channel: string };
    args: { subjects: string };
    result:
      | { status: 'ok'; incarnation: number; epoch: number }
      | { status: 'stale_run' };
  };
  /** Stores a chat that was loaded from Postgres because Redis lacked it. */
  'chats/fill': {
    keys: { meta: string; changes: string; chat: string; ticket: string };
    args: { token: string; sequence: Buffer | string; profile: Buffer | string; profile_version: number | string; kind: string; bots: string; ttl_ms: number | string };
    result:
      | { status: 'ok'; filled: boolean }
      | { status: 'stale_run' };
  };
  /** Returns a chat's record. If the chat is not in Redis, creates a ticket to load it from Postgres. */
  'chats/miss': {
    keys: { meta: string; chat: string; ticket: string };
    args: { token: string };
    result:
      | { status: 'ok'; seq: number; profile: Buffer; bots: string; kind: string; pin: number; keyboards: string }
      | { status: 'stale_run' }
      | { status: 'missing'; ticket: string };
  };
  /** Sends updates about a changed membership or a join request to the chat's bots. */
  'chats/post_member_event': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message: string; outbox: string; changes: string; channel: string; request: string };
    args: { token: string; chat: string; event: string; bots: Buffer | string; record: Buffer | string; linked: Buffer | string; service: Buffer | string; from: Buffer | string };
    result:
      | { status: 'ok'; forward: boolean }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'outbox_full' };
  };
  /** Publishes a chat action, such as typing, to the open event streams of a chat. Stores nothing. */
  'chats/publish_action': {
    keys: { meta: string; member: string; member_ticket: string; chat: string; ticket: string; channel: string };
    args: { token: string; direct: boolean; announced: string; hint: string };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' }
      | { status: 'member_missing'; ticket: string }
      | { status: 'not_member'; kind: string }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'blocked' }
      | { status: 'not_permitted'; what: string }
      | { status: 'chat_closed' };
  };
  /** Stores a person's unsent text for a chat, and publishes it to the person's open event streams. */
  'chats/put_person_draft': {
    keys: { drafts: string; channel: string };
    args: { chat: string; text: string };
    result:
      | { status: 'ok'; version: number };
  };
  /** Returns the id and the first bytes of the newest message in each chat, for sorting lists of chats. */
  'chats/read_activity': {
    keys: { meta: string; chat: string; message: string };
    args: { chats: readonly (string)[] };
    result:
      | { status: 'ok'; rows: unknown }
      | { status: 'stale_run' };
  };
  /** Reads the changes of several chats after a version, for an event stream. All chats are in one partition. */
  'chats/read_changes': {
    keys: { changes: string; meta: string; chat: string; message: string };
    args: { after: number | string; keep: boolean; chats: readonly (string)[] };
    result:
      | { status: 'ok'; version: number; rows: unknown };
  };
  /** Returns the draft in a direct chat. Omits the text if the person has stopped the draft. */
  'chats/read_draft': {
    keys: { meta: string; draft: string };
    args: {  };
    result:
      | { status: 'ok'; id: string | null; after: string | null; flags: string | null; stopped: boolean; content: string | null }
      | { status: 'stale_run' };
  };
  /** Returns a person's unsent texts. */
  'chats/read_person_drafts': {
    keys: { drafts: string };
    args: {  };
    result:
      | { status: 'ok'; fields: unknown };
  };
  /** After a committed change, updates the copies of the profile, bots and permissions in a chat's record. */
  'chats/refresh': {
    keys: { chat: string; ticket: string; channel: string };
    args: { profile: Buffer | string; profile_version: number | string; kind: string; bots: string; permissions: string };
    result:
      | { status: 'ok'; refreshed: boolean };
  };
  /** Publishes a draft to the open event streams of a direct chat. */
  'chats/show_draft': {
    keys: { meta: string; draft: string; chat: string; ticket: string; channel: string };
    args: { token: string; id: string; flags: string; content: string };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'blocked' };
  };
  /** Publishes a hint to a person's open event streams. Stores nothing. */
  'chats/tell_person': {
    keys: { channel: string };
    args: { hint: string };
    result:
      | { status: 'ok' };
  };
  /** Removes the copies of control records that a Postgres commit has changed. */
  'control/forget': {
    keys: { entries: readonly string[] };
    args: {  };
    result:
      | { status: 'ok'; removed: number };
  };
  /** Returns the copy of a control record. If Redis has no copy, creates a ticket to load it from Postgres. */
  'control/read': {
    keys: { meta: string; record: string; ticket: string };
    args: { token: string; ttl_ms: number | string };
    result:
      | { status: 'ok'; bytes: Buffer }
      | { status: 'stale_run' }
      | { status: 'missing'; ticket: string };
  };
  /** Writes the copy of a control record. A fill from Postgres needs a ticket. A refresh needs a newer version. */
  'control/write': {
    keys: { meta: string; record: string; ticket: string; channel: string };
    args: { token: string; refresh: boolean; version: number | string; fields: Buffer | string; count: number | string; ttl_ms: number | string };
    result:
      | { status: 'ok'; written: boolean }
      | { status: 'stale_run' };
  };
  /** Makes a replaced Postgres server the current server again, on an operator's request. */
  'history/accept': {
    keys: { history: string };
    args: { server: string; running: string };
    result:
      | { status: 'ok' };
  };
  /** Announces flushes to fronts. Refuses if a Postgres server that committed a flush was replaced. */
  'history/announce': {
    keys: { history: string; flushed: string };
    args: { hint: string; servers: readonly (string)[] };
    result:
      | { status: 'ok' }
      | { status: 'replaced' };
  };
  /** Records the current Postgres server and its incarnation, and returns the previous server. */
  'history/meet': {
    keys: { history: string };
    args: { server: string; running: string; incarnation: number | string };
    result:
      | { status: 'ok'; before: string | null }
      | { status: 'replaced' };
  };
  /** Records the last Postgres commit, and the tokens, bots and users that this commit revoked or accepted again. */
  'history/note': {
    keys: { history: string; revoked: string };
    args: { running: string; shard: number | string; mark: number | string; id: number | string; version: number | string; changes: readonly (string)[] };
    result:
      | { status: 'ok'; replaced: boolean };
  };
  /** Returns the last commit of Postgres that Redis recorded, and the current server. */
  'history/read': {
    keys: { history: string };
    args: {  };
    result:
      | { status: 'ok'; fields: unknown };
  };
  /** Reads recent revocations, one page at a time, starting at a given time. */
  'history/read_revoked': {
    keys: { revoked: string };
    args: { from: number | string; count: number | string };
    result:
      | { status: 'ok'; revoked: string[]; last: number; ties: number };
  };
  /** Claims an idempotency key for a call. If another call has the key, returns that call's answer or state. */
  'idempotency/claim': {
    keys: { claim: string; live: string; bytes: string };
    args: { digest: string; fingerprint: Buffer | string; seed: string; holder: string };
    result:
      | { status: 'ok'; seed: string; answer: Buffer | null; again: boolean }
      | { status: 'pending' }
      | { status: 'other_parameters' }
      | { status: 'too_many' };
  };
  /** Returns the stored answer of a call with an idempotency key, and the record that the call created. */
  'idempotency/recall': {
    keys: { request: string };
    args: {  };
    result:
      | { status: 'ok'; answer: string; record: Buffer | null }
      | { status: 'unknown' };
  };
  /** Replaces a stored answer with the same answer, encrypted with another key. */
  'idempotency/reseal': {
    keys: { claim: string };
    args: { was: Buffer | string; box: Buffer | string };
    result:
      | { status: 'ok'; done: boolean };
  };
  /** Stores the answer of a call under its idempotency key, or releases the key for another call. */
  'idempotency/settle': {
    keys: { claim: string; bytes: string };
    args: { holder: string; answer: Buffer | string; size: number | string };
    result:
      | { status: 'ok'; noted: boolean };
  };
  /** Stores a bot's answer to an inline query, and wakes the front that waits for the answer. */
  'inline/answer': {
    keys: { meta: string; request: string; query: string; answer: string; cache: string; answers: string; bytes: string; channel: string };
    args: { id: string; bot: string; cache_s: number | string; personal: boolean; list: Buffer | string; results: readonly (Buffer | string)[] };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' }
      | { status: 'too_old' };
  };
  /** Stores a person's inline query for a short time, and queues it for the bot. */
  'inline/ask': {
    keys: { meta: string; journal: string; state: string; queue: string; due: string; request: string; query: string; channel: string };
    args: { ask: Buffer | string; from: Buffer | string; extra: Buffer | string };
    result:
      | { status: 'ok'; id: string; wake: number }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'queue_missing' }
      | { status: 'access_missing'; incarnation: number }
      | { status: 'unchecked'; version: string }
      | { status: 'not_asked' }
      | { status: 'behind' };
  };
  /** Finds a cached answer to an inline query. */
  'inline/find': {
    keys: { meta: string; state: string; cache: string; answer: string };
    args: { checked: string; digests: readonly (string)[] };
    result:
      | { status: 'ok'; id: string; list: Buffer }
      | { status: 'stale_run' }
      | { status: 'unchecked'; version: string };
  };
  /** Reads the answer to an inline query, or the message of one result in the answer. */
  'inline/read': {
    keys: { answer: string };
    args: { id: string; user: string; field: string };
    result:
      | { status: 'ok'; value: Buffer; bot: string; query: string }
      | { status: 'no_answer' };
  };
  /** Queues an update that tells a bot which inline result a person has chosen. */
  'inline/tell_chosen': {
    keys: { meta: string; journal: string; state: string; queue: string; due: string; request: string; channel: string };
    args: { bot: string; from: Buffer | string; user: string; extra: Buffer | string };
    result:
      | { status: 'ok'; wake: number }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'queue_missing' };
  };
  /** Records a flusher's heartbeat or removes it, and returns the live flushers. */
  'journal/heartbeat': {
    keys: { flushers: string };
    args: { id: string; stale_ms: number | string; leaving: boolean };
    result:
      | { status: 'ok'; live: string[] };
  };
  /** Acquires or renews the lease under which a flusher reads a journal. */
  'journal/lease': {
    keys: { lease: string };
    args: { owner: string; ms: number | string };
    result:
      | { status: 'ok' }
      | { status: 'taken' };
  };
  /** Returns the oldest and the newest entry of a partition's journal. */
  'journal/progress': {
    keys: { meta: string; journal: string };
    args: {  };
    result:
      | { status: 'ok'; under: string; first: number | null; last: number | null }
      | { status: 'stale_run' };
  };
  /** Releases the lease if the flusher still holds it. */
  'journal/release': {
    keys: { lease: string };
    args: { owner: string };
    result:
      | { status: 'ok' };
  };
  /** Removes flushed entries from the journal and sets an expiry on the flushed entities. */
  'journal/settle': {
    keys: { meta: string; journal: string; entities: readonly string[] };
    args: { after: string; hot_ms: number | string; records: number | string; brief: number | string; versions: readonly (number | string)[] };
    result:
      | { status: 'ok'; length: number; expiring: number };
  };
  /** Returns the size of a partition's journal, and the run id of the Redis server for which the partition is open. */
  'journal/state': {
    keys: { meta: string; journal: string };
    args: {  };
    result:
      | { status: 'ok'; length: number; first: number | null; version: number; run: string | null; high_water: number; bytes: number; bytes_max: number };
  };
  /** Publishes a flush hint, from a waiting front to the flushers or from a flusher to the fronts. Stores nothing. */
  'journal/tell': {
    keys: { channel: string };
    args: { hint: string };
    result:
      | { status: 'ok' };
  };
  /** Takes tokens from a token bucket, one for each call, or puts tokens back. */
  'limits/take': {
    keys: { bucket: string };
    args: { calls: number | string; interval_us: number | string; count: number | string };
    result:
      | { status: 'ok'; wait: number };
  };
  /** Deletes a message in any chat, and unpins it if it was pinned. The tombstone stays until it is in Postgres. */
  'messages/delete': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message_ticket: string; member: string; member_ticket: string; post: string; acted: string; changes: string; channel: string; request: string; message: string };
    args: { token: string; chat: string; message_id: string; who: string; direct: boolean };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'message_missing'; ticket: string }
      | { status: 'member_missing'; ticket: string }
      | { status: 'not_member'; kind: string }
      | { status: 'not_found' }
      | { status: 'cant_be_deleted' };
  };
  /** Deletes either all of the given messages in a chat, or none of them. */
  'messages/delete_batch': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message: string; member: string; member_ticket: string; post: string; acted: string; changes: string; channel: string; request: string };
    args: { token: string; chat: string; who: string; direct: boolean; ids: readonly (string)[] };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'member_missing'; ticket: string }
      | { status: 'not_member'; kind: string }
      | { status: 'cant_be_deleted' }
      | { status: 'messages_missing'; cold: string[]; tickets: string[] };
  };
  /** Returns the pending edits that are due, and removes edits that can never be applied. */
  'messages/due_edits': {
    keys: { meta: string; pending: string; edits_due: string };
    args: { limit: number | string; gone: readonly (string)[] };
    result:
      | { status: 'ok'; edits: string[]; wait_ms: number | null }
      | { status: 'stale_run' };
  };
  /** Replaces the text, caption, media, live location or keyboard of a message in a direct chat. */
  'messages/edit_direct': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message: string; message_ticket: string; sibling: string; pending: string; edits_due: string; request: string; granted: string; queue: string; due: string; queue_state: string; bot_channel: string; changes: string; channel: string };
    args: { token: string; edit: Buffer | string; content: Buffer | string; markup: Buffer | string; from: Buffer | string };
    result:
      | { status: 'ok'; record: Buffer; peer: Buffer; reply: Buffer; wake: number; wait_ms: number | null }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'blocked' }
      | { status: 'message_missing'; ticket: string }
      | { status: 'not_found' }
      | { status: 'cant_be_edited' }
      | { status: 'no_text' }
      | { status: 'no_caption' }
      | { status: 'no_media' }
      | { status: 'no_live' }
      | { status: 'wrong_period' }
      | { status: 'not_modified' }
      | { status: 'too_often' }
      | { status: 'queue_missing' }
      | { status: 'access_missing'; incarnation: number }
      | { status: 'cant_write' }
      | { status: 'not_pending' };
  };
  /** Replaces the text, caption, media, live location or keyboard of a message in a group or a channel. */
  'messages/edit_shared': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message: string; message_ticket: string; sibling: string; pending: string; edits_due: string; request: string; granted: string; member: string; member_ticket: string; outbox: string; changes: string; channel: string };
    args: { token: string; edit: Buffer | string; content: Buffer | string; markup: Buffer | string; from: Buffer | string };
    result:
      | { status: 'ok'; record: Buffer; peer: Buffer; reply: Buffer; forward: boolean; wait_ms: number | null }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'message_missing'; ticket: string }
      | { status: 'not_found' }
      | { status: 'cant_be_edited' }
      | { status: 'no_text' }
      | { status: 'no_caption' }
      | { status: 'no_media' }
      | { status: 'no_live' }
      | { status: 'wrong_period' }
      | { status: 'not_modified' }
      | { status: 'too_often' }
      | { status: 'member_missing'; ticket: string }
      | { status: 'not_member'; kind: string }
      | { status: 'outbox_full' }
      | { status: 'not_permitted'; what: string }
      | { status: 'not_pending' }
      | { status: 'chat_closed' };
  };
  /** Deletes messages in a chat because they are too old or because an account was deleted. */
  'messages/erase': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message: string; post: string; acted: string; changes: string; channel: string };
    args: { token: string; chat: string; age_ms: number | string; items: readonly (string)[] };
    result:
      | { status: 'ok'; erased: number }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string };
  };
  /** Stores a message that was loaded from Postgres because Redis lacked it. */
  'messages/fill': {
    keys: { meta: string; message: string; ticket: string };
    args: { token: string; record: Buffer | string; ttl_ms: number | string };
    result:
      | { status: 'ok'; filled: boolean }
      | { status: 'stale_run' };
  };
  /** Stores the link preview of a web page in a slot of the cache. */
  'messages/keep_link_preview': {
    keys: { preview: string };
    args: { kept: Buffer | string; ttl_ms: number | string };
    result:
      | { status: 'ok' };
  };
  /** Pins a message of a direct chat in place of the pinned message. Adds a service message about the new pin. */
  'messages/pin_direct': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message_ticket: string; sibling: string; request: string; queue: string; due: string; queue_state: string; bot_channel: string; changes: string; channel: string; message: string };
    args: { token: string; pin: Buffer | string; tail: Buffer | string; from: Buffer | string; notify: string };
    result:
      | { status: 'ok'; wake: number }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'blocked' }
      | { status: 'message_missing'; ticket: string }
      | { status: 'queue_missing' }
      | { status: 'access_missing'; incarnation: number }
      | { status: 'cant_write' }
      | { status: 'not_found' }
      | { status: 'service' };
  };
  /** Pins a message of a group or channel in place of the pinned message. Adds a service message about the new pin. */
  'messages/pin_shared': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message_ticket: string; sibling: string; request: string; member: string; member_ticket: string; outbox: string; changes: string; channel: string; message: string };
    args: { token: string; pin: Buffer | string; tail: Buffer | string; from: Buffer | string; notify: string };
    result:
      | { status: 'ok'; forward: boolean }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'message_missing'; ticket: string }
      | { status: 'member_missing'; ticket: string }
      | { status: 'not_member'; kind: string }
      | { status: 'not_allowed' }
      | { status: 'not_found' }
      | { status: 'service' }
      | { status: 'outbox_full' }
      | { status: 'chat_closed' };
  };
  /** Returns the link preview in a slot of the cache. */
  'messages/read_link_preview': {
    keys: { preview: string };
    args: {  };
    result:
      | { status: 'ok'; kept: Buffer | null };
  };
  /** Returns the given messages that are in Redis, if the caller is a member of the chat. */
  'messages/read_many': {
    keys: { meta: string; chat: string; ticket: string; message: string; member: string; member_ticket: string };
    args: { token: string; direct: boolean; ids: readonly (string)[] };
    result:
      | { status: 'ok'; newest: number; peer: Buffer; rows: unknown }
      | { status: 'stale_run' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'member_missing'; ticket: string }
      | { status: 'not_member'; kind: string };
  };
  /** Returns a chat's newest messages with ids below a given id, newest first. */
  'messages/read_range': {
    keys: { meta: string; chat: string; message: string };
    args: { before: number | string; limit: number | string; bytes: number | string };
    result:
      | { status: 'ok'; newest: number; peer: Buffer; first: number; rows: unknown; flushed: number | null }
      | { status: 'stale_run' }
      | { status: 'chat_missing' };
  };
  /** Returns the whole records or only the first bytes of the given messages that are in Redis. */
  'messages/read_some': {
    keys: { meta: string; message: string };
    args: { bytes: number | string; ids: readonly (string)[] };
    result:
      | { status: 'ok'; rows: unknown }
      | { status: 'stale_run' };
  };
  /** Sends messages to a group or channel, all or none, with consecutive ids. */
  'messages/send_shared': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message: string; request: string; member: string; member_ticket: string; outbox: string; changes: string; channel: string; post: string };
    args: { token: string; chat: string; sender: string; reply_to: string; from: Buffer | string; partition: string; keep: string; tails: readonly (Buffer | string)[] };
    result:
      | { status: 'ok'; first: number; date: number; peer: Buffer; reply: Buffer | null; forward: boolean; post: number }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'reply_missing'; ticket: string }
      | { status: 'reply_not_found' }
      | { status: 'member_missing'; ticket: string }
      | { status: 'not_member'; kind: string }
      | { status: 'not_allowed' }
      | { status: 'not_permitted'; what: string }
      | { status: 'outbox_full' }
      | { status: 'chat_closed' };
  };
  /** Sends messages from a user to a bot, all or none, with consecutive ids. */
  'messages/send_to_bot': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message: string; request: string; queue: string; due: string; queue_state: string; bot_channel: string; changes: string; channel: string };
    args: { token: string; chat: string; reply_to: string; from: Buffer | string; keep: string; tails: readonly (Buffer | string)[] };
    result:
      | { status: 'ok'; first: number; date: number; peer: Buffer; reply: Buffer | null; wake: number }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'blocked' }
      | { status: 'reply_missing'; ticket: string }
      | { status: 'reply_not_found' }
      | { status: 'queue_missing' }
      | { status: 'access_missing'; incarnation: number }
      | { status: 'cant_write' };
  };
  /** Sends messages from a bot to a user, all or none, with consecutive ids. */
  'messages/send_to_user': {
    keys: { meta: string; journal: string; chat: string; message: string; request: string; changes: string; channel: string };
    args: { token: string; chat: string; reply_to: string; keep: string; tails: readonly (Buffer | string)[] };
    result:
      | { status: 'ok'; first: number; date: number; peer: Buffer; reply: Buffer | null }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'blocked' }
      | { status: 'reply_missing'; ticket: string }
      | { status: 'reply_not_found' };
  };
  /** Unpins the pinned message in any chat. */
  'messages/unpin': {
    keys: { meta: string; journal: string; chat: string; ticket: string; member: string; member_ticket: string; request: string; changes: string; channel: string };
    args: { token: string; chat: string; message_id: string; all: boolean; direct: boolean };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'member_missing'; ticket: string }
      | { status: 'not_member'; kind: string }
      | { status: 'not_allowed' }
      | { status: 'not_found' };
  };
  /** Removes entities of a closed partition from Redis. */
  'partition/forget': {
    keys: { meta: string; lease: string; entities: readonly string[] };
    args: { expected: string; owner: string };
    result:
      | { status: 'ok' }
      | { status: 'moved' }
      | { status: 'open' }
      | { status: 'taken' };
  };
  /** Raises a partition's incarnation, so that nodes no longer use the copies that they read from Postgres. */
  'partition/raise': {
    keys: { meta: string };
    args: { incarnation: number | string };
    result:
      | { status: 'ok' }
      | { status: 'behind'; highest: number };
  };
  /** Opens a partition for the connected Redis under a raised incarnation. */
  'partition/recover': {
    keys: { meta: string; journal: string };
    args: { expected: string; incarnation: number | string; post: number | string; high_water: number | string; bytes_max: number | string; installation: string };
    result:
      | { status: 'ok'; opened: boolean }
      | { status: 'behind'; highest: number }
      | { status: 'moved' };
  };
  /** Closes a partition before its Redis shuts down. Scripts refuse changes until the partition is opened again. */
  'partition/seal': {
    keys: { meta: string };
    args: { seal: string };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' };
  };
  /** Opens a sealed partition without raising its incarnation. */
  'partition/unseal': {
    keys: { meta: string };
    args: { expected: string; seal: string; high_water: number | string; bytes_max: number | string };
    result:
      | { status: 'ok' }
      | { status: 'moved' }
      | { status: 'unsealed' };
  };
  /** Stores a post that was loaded from Postgres because Redis lacked it. */
  'posts/fill': {
    keys: { meta: string; post: string; ticket: string };
    args: { token: string; ttl_ms: number | string; fields: readonly (Buffer | string)[] };
    result:
      | { status: 'ok'; filled: boolean }
      | { status: 'stale_run' };
  };
  /** Sets or removes one of a user's emoji on a post, or removes all the user's reactions. */
  'posts/react': {
    keys: { meta: string; journal: string; post: string; post_ticket: string; acted: string; chat: string; member: string; request: string; user_ticket: string; channel: string; due: string };
    args: { token: string; reaction: Buffer | string; external: Buffer | string; known: string };
    result:
      | { status: 'ok'; changed: boolean; own: string; fields: unknown }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'post_missing'; ticket: string }
      | { status: 'not_found' }
      | { status: 'user_missing'; ticket: string }
      | { status: 'too_many' }
      | { status: 'chat_missing'; ticket: string; chat: number }
      | { status: 'member_missing'; ticket: string; chat: number };
  };
  /** Reads a post and a user's reactions to it. Refuses if the user or bot may not see the post. */
  'posts/read': {
    keys: { meta: string; post: string; post_ticket: string; acted: string; chat: string; member: string };
    args: { token: string; who: string; ttl_ms: number | string };
    result:
      | { status: 'ok'; fields: unknown; own: string | null }
      | { status: 'stale_run' }
      | { status: 'post_missing'; ticket: string }
      | { status: 'not_found' }
      | { status: 'chat_missing'; ticket: string; chat: number }
      | { status: 'member_missing'; ticket: string; chat: number };
  };
  /** Adds people from Postgres to an emoji's list of latest reactors. */
  'posts/refill': {
    keys: { meta: string; post: string; acted: string; ticket: string };
    args: { token: string; emoji: string; reactors: readonly (Buffer | string)[] };
    result:
      | { status: 'ok'; ticket: string; listed: number }
      | { status: 'stale_run' };
  };
  /** Queues updates about changed reaction counts for the bots of channels. */
  'posts/tell_counts': {
    keys: { meta: string; outbox: string; post: string; chat: string; due: string };
    args: { token: string; limit: number | string; gone: readonly (string)[] };
    result:
      | { status: 'ok'; sent: number; more: boolean; missing: string[] }
      | { status: 'stale_run' }
      | { status: 'outbox_full' };
  };
  /** Returns the versions of posts. A post that is deleted or not in Redis has version 0. */
  'posts/versions': {
    keys: { post: string };
    args: { posts: readonly (string)[] };
    result:
      | { status: 'ok'; versions: string[] };
  };
  /** Adds a process's figures to the newest point of the history that the operators' page shows. */
  'presence/add_figures': {
    keys: { figures: string };
    args: { added: string };
    result:
      | { status: 'ok'; rest_ms: number; first: number }
      | { status: 'too_large' };
  };
  /** Stores a process's report about itself, for the other processes. */
  'presence/announce': {
    keys: { processes: string };
    args: { id: string; report: string };
    result:
      | { status: 'ok' };
  };
  /** Records that users have browser windows open on a node, or have closed all of these windows. */
  'presence/note': {
    keys: { windows: string };
    args: { node: string; ttl_ms: number | string; users: readonly (string)[] };
    result:
      | { status: 'ok' };
  };
  /** Returns which users have a browser window open on any node. */
  'presence/read': {
    keys: { windows: string };
    args: { users: readonly (string)[] };
    result:
      | { status: 'ok'; present: unknown };
  };
  /** Adds updates from another partition to a bot's queue, in order and without duplicates. */
  'updates/accept_forwarded': {
    keys: { meta: string; journal: string; state: string; queue: string; due: string; marks: string; channel: string };
    args: { bot: string; source: string; expected: string; updates: readonly (Buffer | string)[] };
    result:
      | { status: 'ok'; accepted: number; wake: number }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'queue_missing' }
      | { status: 'moved' };
  };
  /** Stores a bot's answer to a callback query. */
  'updates/answer_query': {
    keys: { meta: string; changes: string; channel: string; request: string; query: string; chat: string };
    args: { id: string; bot: string; answer: Buffer | string };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' }
      | { status: 'too_old' };
  };
  /** Closes the queue of a deleted bot. The queue then accepts no updates and no messages, and expires later. */
  'updates/close_queue': {
    keys: { meta: string; routes: string; state: string; queue: string; marks: string; due: string };
    args: { version: number | string };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' };
  };
  /** Confirms the updates below an offset, outside a poll. */
  'updates/confirm': {
    keys: { state: string; queue: string; consumption: string; holders: string; channel: string };
    args: { name: string; offset: number | string };
    result:
      | { status: 'ok'; more: boolean }
      | { status: 'queue_missing' }
      | { status: 'webhook_active' }
      | { status: 'shared' };
  };
  /** Performs one step of a consumer's long poll or stream. */
  'updates/consume': {
    keys: { state: string; queue: string; consumers: string; consumption: string; assigned: string; unsent: string; holders: string; meta: string; journal: string; channel: string };
    args: { bot: string; name: string; poll: string; first: boolean; offset: number | string; limit: string; mask: string; lease: number | string };
    result:
      | { status: 'ok'; rows: unknown; more: boolean; wait: number; sharing: number; held: number; full: boolean; rest: boolean }
      | { status: 'queue_missing' }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'webhook_active' }
      | { status: 'terminated' }
      | { status: 'terminated_by_webhook' }
      | { status: 'too_many_consumers' }
      | { status: 'lapsed' };
  };
  /** Reads the updates that a stream without a consumer name has not sent yet. */
  'updates/follow': {
    keys: { state: string; queue: string; consumption: string };
    args: { name: string; poll: string; after: number | string; limit: number | string };
    result:
      | { status: 'ok'; rows: unknown; more: boolean; oldest: number; latest: number }
      | { status: 'terminated' }
      | { status: 'terminated_by_webhook' };
  };
  /** Reads the data of a bot's queue for getWebhookInfo. */
  'updates/info': {
    keys: { state: string; queue: string; retries: string };
    args: {  };
    result:
      | { status: 'ok'; pending: number; mask: number | null; failed: number | null; why: string | null; strayed: number | null; now: number; dead: number; next: number | null };
  };
  /** Opens the queue of a bot that has no queue. */
  'updates/open_queue': {
    keys: { meta: string; routes: string; state: string };
    args: { known: number | string; start: number | string; mask: number | string; hook: string; set: string; routes: Buffer | string };
    result:
      | { status: 'ok'; opened: boolean }
      | { status: 'stale_run' }
      | { status: 'moved'; incarnation: number };
  };
  /** Returns which waiting polls of a partition must be woken to check their queue. */
  'updates/peek': {
    keys: { state: string; queue: string };
    args: { polls: readonly (string)[] };
    result:
      | { status: 'ok'; wake: string[] };
  };
  /** Performs one step of a long poll: replaces an earlier poll, confirms updates, and reads pending updates. */
  'updates/poll': {
    keys: { state: string; queue: string; meta: string; journal: string; channel: string };
    args: { bot: string; poll: string; first: boolean; offset: string; limit: number | string; mask: string };
    result:
      | { status: 'ok'; rows: unknown; more: boolean }
      | { status: 'queue_missing' }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'webhook_active' }
      | { status: 'terminated' }
      | { status: 'terminated_by_webhook' }
      | { status: 'shared' };
  };
  /** Handles a press of an inline button in a direct chat. Queues a callback query for the bot. */
  'updates/press_direct': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message: string; message_ticket: string; queue: string; due: string; queue_state: string; bot_channel: string; granted: string; query: string; request: string };
    args: { token: string; press: Buffer | string; from: Buffer | string; extra: Buffer | string };
    result:
      | { status: 'ok'; query_id: string; wake: number }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'blocked' }
      | { status: 'message_missing'; ticket: string }
      | { status: 'queue_missing' }
      | { status: 'access_missing'; incarnation: number }
      | { status: 'cant_write' }
      | { status: 'not_found' }
      | { status: 'no_button' }
      | { status: 'inline'; bot: string };
  };
  /** Handles a press of a button below a person's inline result. Queues a callback query for the result's bot. */
  'updates/press_inline': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message: string; message_ticket: string; member: string; member_ticket: string; granted: string; query: string; outbox: string; request: string };
    args: { token: string; press: Buffer | string; from: Buffer | string; extra: Buffer | string };
    result:
      | { status: 'ok'; query_id: string; forward: boolean }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'blocked' }
      | { status: 'message_missing'; ticket: string }
      | { status: 'member_missing'; ticket: string }
      | { status: 'not_member'; kind: string }
      | { status: 'not_found' }
      | { status: 'no_button' }
      | { status: 'outbox_full' };
  };
  /** Handles a press of an inline button in a group. Queues a callback query for the bot that sent the message. */
  'updates/press_shared': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message: string; message_ticket: string; member: string; member_ticket: string; granted: string; query: string; outbox: string; request: string };
    args: { token: string; press: Buffer | string; from: Buffer | string; extra: Buffer | string };
    result:
      | { status: 'ok'; query_id: string; forward: boolean }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'message_missing'; ticket: string }
      | { status: 'member_missing'; ticket: string }
      | { status: 'not_member'; kind: string }
      | { status: 'not_found' }
      | { status: 'no_button' }
      | { status: 'outbox_full' }
      | { status: 'inline'; bot: string };
  };
  /** Reads entries of a partition's outbox, from the start or after a given entry, up to a limit. */
  'updates/read_outbox': {
    keys: { meta: string; outbox: string };
    args: { after: string; limit: number | string };
    result:
      | { status: 'ok'; rows: unknown; incarnation: number; more: boolean }
      | { status: 'stale_run' };
  };
  /** Renews the leases of the waiting consumers of a partition that have no work. */
  'updates/renew': {
    keys: { meta: string; state: string; consumers: string; consumption: string; assigned: string };
    args: { waiting: readonly (string)[] };
    result:
      | { status: 'ok'; waits: unknown }
      | { status: 'stale_run' };
  };
  /** Copies a bot's write policy from Postgres to its queue state. */
  'updates/set_access': {
    keys: { meta: string; state: string; chat: string };
    args: { known: number | string; version: number | string; policy: string; chat: string; may: boolean };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' }
      | { status: 'moved'; incarnation: number };
  };
  /** Stops a draft, and queues an update that tells the bot about the stop. */
  'updates/stop_draft': {
    keys: { meta: string; journal: string; chat: string; ticket: string; draft: string; queue: string; due: string; channel: string; queue_state: string; bot_channel: string };
    args: { token: string; chat: string; id: string; from: Buffer | string };
    result:
      | { status: 'ok'; wake: number }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'blocked' }
      | { status: 'queue_missing' }
      | { status: 'access_missing'; incarnation: number }
      | { status: 'cant_write' }
      | { status: 'not_found' };
  };
  /** Deletes the first entries of an outbox. */
  'updates/trim_outbox': {
    keys: { meta: string; outbox: string };
    args: { incarnation: number | string; last: string };
    result:
      | { status: 'ok'; left: number }
      | { status: 'stale_run' }
      | { status: 'moved' };
  };
  /** Stores, changes or retracts a person's vote in a poll. */
  'votes/cast': {
    keys: { meta: string; journal: string; request: string; poll: string; poll_ticket: string; voted: string; outbox: string; user_ticket: string; due: string };
    args: { token: string; vote: Buffer | string; known: string; from: Buffer | string };
    result:
      | { status: 'ok'; results: Buffer; forward: boolean }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'poll_missing'; ticket: string }
      | { status: 'poll_gone' }
      | { status: 'poll_closed' }
      | { status: 'outbox_full' }
      | { status: 'user_missing'; ticket: string }
      | { status: 'vote_final' };
  };
  /** Creates a poll. */
  'votes/create': {
    keys: { meta: string; journal: string; poll: string; due: string };
    args: { token: string; poll: string; place: string; record: Buffer | string; closes_ms: number | string; fields: readonly (Buffer | string)[] };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'taken' };
  };
  /** Deletes a poll whose message could not be sent. */
  'votes/drop': {
    keys: { meta: string; journal: string; poll: string; poll_ticket: string; due: string };
    args: { poll: string; place: string };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' }
      | { status: 'journal_full' };
  };
  /** Stores a poll that was read from Postgres because Redis lacked it. */
  'votes/fill': {
    keys: { meta: string; poll: string; poll_ticket: string; due: string };
    args: { token: string; ttl_ms: number | string; poll: string; closes_ms: number | string; fields: readonly (Buffer | string)[] };
    result:
      | { status: 'ok'; filled: boolean }
      | { status: 'stale_run' };
  };
  /** Reads the results of a poll and a person's vote. */
  'votes/read': {
    keys: { meta: string; poll: string; poll_ticket: string; voted: string };
    args: { token: string; who: string; ttl_ms: number | string };
    result:
      | { status: 'ok'; results: Buffer; own: string | null }
      | { status: 'stale_run' }
      | { status: 'poll_missing'; ticket: string }
      | { status: 'poll_gone' };
  };
  /** Closes a poll and replaces the keyboard of its message. */
  'votes/stop': {
    keys: { meta: string; journal: string; chat: string; ticket: string; message: string; message_ticket: string; request: string; poll: string; poll_ticket: string; member: string; member_ticket: string; outbox: string; changes: string; channel: string; due: string };
    args: { token: string; stop: Buffer | string; direct: boolean; markup: Buffer | string; from: Buffer | string };
    result:
      | { status: 'ok'; results: Buffer; forward: boolean }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'chat_missing'; ticket: string }
      | { status: 'message_missing'; ticket: string }
      | { status: 'not_found' }
      | { status: 'poll_missing'; ticket: string }
      | { status: 'poll_gone' }
      | { status: 'poll_closed' }
      | { status: 'member_missing'; ticket: string }
      | { status: 'not_member'; kind: string }
      | { status: 'outbox_full' };
  };
  /** Queues updates about changed and expired polls for their bots. Each poll is reported at most once a second. */
  'votes/tell': {
    keys: { meta: string; outbox: string; poll: string; due: string };
    args: { token: string; limit: number | string; gone: readonly (string)[] };
    result:
      | { status: 'ok'; more: boolean; missing: string[] }
      | { status: 'stale_run' }
      | { status: 'outbox_full' };
  };
  /** Performs one step of a webhook delivery. */
  'webhooks/advance': {
    keys: { meta: string; state: string; queue: string; due: string; parked: string; retries: string; attempts: string };
    args: { bot: string; fence: string; since: string; after: string; safe: string; leave: string; report: Buffer | string };
    result:
      | { status: 'ok'; hook: number; now: number; again: unknown; fresh: unknown; after: string; more: boolean; wait: number; gone: number | null; left: boolean; wake: boolean; dropped: number }
      | { status: 'stale_run' }
      | { status: 'fenced' };
  };
  /** Removes undeliverable updates from a bot's queue and journals them as dead letters. */
  'webhooks/bury': {
    keys: { meta: string; journal: string; state: string; queue: string; parked: string; retries: string; attempts: string };
    args: { bot: string; fence: string; reason: string; ids: readonly (string)[] };
    result:
      | { status: 'ok'; buried: number }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'fenced' };
  };
  /** Closes the queue of a replay and drops its pending updates. */
  'webhooks/close_replay': {
    keys: { meta: string; state: string; due: string; channel: string };
    args: { bot: string; replay: string };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' };
  };
  /** Adds the next updates of a replay to the replay's queue, and moves the replay's cursor. */
  'webhooks/feed_replay': {
    keys: { meta: string; journal: string; state: string; queue: string; due: string; channel: string };
    args: { bot: string; replay: string; from: string; to: string; updates: readonly (Buffer | string)[] };
    result:
      | { status: 'ok'; wake: boolean }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'queue_missing' }
      | { status: 'moved' };
  };
  /** After a bot's webhook changed, makes more of the bot's parked chats due now. */
  'webhooks/hasten': {
    keys: { state: string; retries: string };
    args: { version: string };
    result:
      | { status: 'ok'; more: boolean };
  };
  /** Acquires the lease on a webhook bot, and reads the first updates to deliver. */
  'webhooks/lease': {
    keys: { meta: string; state: string; queue: string; due: string; parked: string; retries: string; attempts: string };
    args: { bot: string; limit: number | string };
    result:
      | { status: 'ok'; fence: string; hook: number; since: string; now: number; again: unknown; fresh: unknown; after: string; safe: string; more: boolean; wait: number; probes: number; gone: number | null; dropped: number }
      | { status: 'stale_run' }
      | { status: 'no_webhook' }
      | { status: 'leased' }
      | { status: 'held' };
  };
  /** Opens the queue of a replay. Replaces the queue of an earlier replay. */
  'webhooks/open_replay': {
    keys: { meta: string; state: string };
    args: { bot: string; replay: string; slot: string; from: string };
    result:
      | { status: 'ok' }
      | { status: 'stale_run' }
      | { status: 'queue_missing' };
  };
  /** Reads the progress of a replay, and the pending updates that the replay may deliver next. */
  'webhooks/read_replay': {
    keys: { state: string; queue: string };
    args: { bot: string; from: string; last: string; slots: readonly (string)[] };
    result:
      | { status: 'ok'; newest: number | null; replay: number | null; at: number | null; fed: number | null; pending: number; dead: number | null; why: string | null; late: boolean; found: unknown };
  };
  /** Appends dead letters to a bot's queue again. Each update keeps its original id, which receivers may know. */
  'webhooks/replay': {
    keys: { meta: string; journal: string; state: string; queue: string; due: string; request: string; channel: string };
    args: { bot: string; updates: readonly (Buffer | string)[] };
    result:
      | { status: 'ok'; queued: number; wake: number }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'queue_missing' };
  };
  /** Replaces the webhook routes of a bot. */
  'webhooks/set_routes': {
    keys: { meta: string; journal: string; state: string; queue: string; due: string; routes: string; channel: string };
    args: { bot: string; routes: Buffer | string; removed: readonly (string)[] };
    result:
      | { status: 'ok'; done: boolean; wake: number; strays: string[] }
      | { status: 'stale_run' }
      | { status: 'journal_full' }
      | { status: 'queue_missing' };
  };
  /** Finds the bots of a partition that need a worker. */
  'webhooks/sweep': {
    keys: { due: string; state: string };
    args: { limit: number | string };
    result:
      | { status: 'ok'; wake: string[]; unserved: string[]; more: boolean };
  };
  /** Switches a bot between polling and webhook according to its settings. Drops the bot's queue if requested. */
  'webhooks/switch': {
    keys: { meta: string; journal: string; state: string; queue: string; due: string; parked: string; retries: string; attempts: string; channel: string; consumption: string };
    args: { bot: string; version: string; set: string; active: boolean; drop: string; mask: string };
    result:
      | { status: 'ok'; wake: boolean; more: boolean }
      | { status: 'stale_run' }
      | { status: 'queue_missing' };
  };
}

export type ScriptName = keyof Scripts;
