/**
 * Sends the changes of a user's chats as event streams. The changes of a partition are in the order of their versions.
 * A cursor contains, for every partition with chats of the user, the version up to which changes were sent. A stream
 * that resumes with a cursor gets the missed changes from the logs of the chats. If a log no longer has all missed
 * changes, the stream gets a `gap` and the client reloads the chat. Streams keep the logs of their chats alive. A log
 * expires some time after its last stream has ended. Hints wake streams, and a check every second finds changes whose
 * hints were lost.
 */

import type { Hints } from '../../redis/hints.js';
import { isInChat } from '../../rules/rights.js';
import type { Timer } from '../../time.js';
import { messageKinds, unpack } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type Cursors, cursorText, parseCursor } from '../core/cursors.js';
import { groupBy, piecesOf } from '../core/groups.js';
import { type ChatRef, chatText, isDirect, parseChat } from '../core/keys.js';
import type { Records } from '../core/records.js';
import { relatedId, type StoredMessage, storedMessage } from '../core/stored_message.js';
import { storeLimits as limits } from '../limits.js';
import { readActionHint, type ShownAction } from './action_hints.js';
import type { Chats } from './chats.js';
import { type PersonDraft, readPersonDraftHint } from './person_drafts.js';
import { profileHint, readHint, scheduledHint, settingsHint } from './person_hints.js';
import type { Presence } from './presence.js';
import { DraftPace, type MessageDraft, readDraftHint, type StoppedDraft } from './shown_drafts.js';

export type ChangeKind = 'n' | 'e' | 'd' | 'a' | 'p' | 'gap';

export interface Change {
  readonly chat: ChatRef;
  readonly kind: ChangeKind;
  /** The id of the message or callback query that the change is about. 0 after an unpin. */
  readonly id: string;
  /**
   * The changed message. Null if the change has no message, or if the message was deleted or is not in Redis.
   */
  readonly message: StoredMessage | null;
  readonly answer: Readonly<Record<string, unknown>> | null;
  /** For a pin: whether to notify the person. */
  readonly notify: boolean;
  /** The cursor from which a client can resume the stream after this change. */
  readonly cursor: string;
}

export interface StreamListener {
  change(change: Change): void;
  /**
   * Called when the stream has started. The stream reports all changes after this moment. A client whose stream ends
   * before the first change can resume the stream from `cursor`.
   */
  start(cursor: string): void;
  /**
   * Reports that the person has entered a chat (by opening it or being added) or has left it. This event is not stored.
   */
  membership(chat: ChatRef, isIn: boolean): void;
  /** Reports a chat action, such as typing. This event is not stored. */
  action(chat: ChatRef, shown: ShownAction): void;
  /**
   * Reports a bot's draft in a direct chat. Until the returned promise resolves, the stream keeps only the newest draft
   * and drops older ones. The promise never rejects.
   */
  draft(chat: ChatRef, draft: MessageDraft): Promise<void>;
  draftStopped(chat: ChatRef, stopped: StoppedDraft): void;
  /** Reports that the person has read a chat up to a message. This event is not stored. */
  read(chat: number, message: number): void;
  /** Reports that the person has muted, pinned or archived a chat, or has undone this. This event is not stored. */
  settings(chat: number): void;
  /** Reports that the person's scheduled posts in a channel have changed. This event is not stored. */
  scheduled(chat: number): void;
  /** Reports that the person has changed their name, avatar or settings. This event is not stored. */
  profile(): void;
  /** Reports the person's own unsent text in a chat. This event is not stored. */
  personDraft(draft: PersonDraft): void;
  /** Called when this node shuts down. The stream reports no more changes. */
  leave(): void;
}

/** After this many timer ticks, a stream reloads its chat list even without a hint. */
const reloadTicks = 10;

type RawRow = [
  chat: Buffer,
  kind: Buffer,
  id: Buffer,
  version: Buffer,
  to: Buffer,
  extra: Buffer,
  record: Buffer,
  peer: Buffer,
];

function shownMessage(chat: ChatRef, id: number, record: Buffer, peer: Buffer): StoredMessage | null {
  if (record.length === 0) return null;
  const message = storedMessage(chat, id, record, peer, null);
  return message.record.kind === messageKinds.deleted ? null : message;
}

function changeOf([name, kind, id, , , extra, record, peer]: RawRow): Omit<Change, 'cursor'> {
  const chat = parseChat(String(name));
  const shared = { chat, kind: String(kind) as ChangeKind, id: String(id) };
  const message = shownMessage(chat, Number(id), record, peer);
  if (shared.kind === 'p') return { message, answer: null, notify: extra.length > 0, ...shared };
  return { message, answer: extra.length > 0 ? unpack(extra) : null, notify: false, ...shared };
}

interface Sources {
  readonly context: StoreContext;
  readonly hints: Hints;
  readonly chats: Chats;
  readonly records: Records;
}

async function readChanges(
  { scripts, keys }: StoreContext,
  partition: number,
  after: number,
  keep: boolean,
  list: readonly ChatRef[],
) {
  const at = {
    meta: keys.meta(partition),
    changes: keys.changesRoot(partition),
    chat: keys.chatRoot(partition),
    message: keys.messageRoot(partition),
  };
  let upTo: number | null = null;
  const rows: RawRow[] = [];
  for (const piece of piecesOf(list, limits.changes_chats_max)) {
    const chats = piece.map(chatText);
    const read = await scripts.call('chats/read_changes', partition, at, { after, keep, chats });
    upTo ??= read.version;
    rows.push(...(read.rows as RawRow[]));
  }
  const version = upTo ?? after;
  // Omits changes after `version`, because the next read returns them. Keeps every gap (a report of lost changes), even
  // if the next read reports the gap again.
  const shown = rows.filter((row) => Number(row[3]) <= version || String(row[1]) === 'gap');
  return { version, rows: shown };
}

async function relatedMessages(records: Records, changes: ReadonlyArray<Pick<Change, 'chat' | 'message'>>) {
  const referring = changes.flatMap(({ message }) =>
    message && relatedId(message.record) !== 0 ? [message] : [],
  );
  const byChat = groupBy(referring, ({ chat }) => chatText(chat));
  const related = new Map<StoredMessage, StoredMessage>();
  await Promise.all(
    [...byChat].map(async ([name, messages]) => {
      const shown = await records.relate(parseChat(name), messages, new Map());
      for (const [i, message] of messages.entries()) related.set(message, shown[i] ?? message);
    }),
  );
  return related;
}

/**
 * Returns which of the changed chats the person may read now. The stream's own list of chats may be outdated, because
 * only hints update it.
 */
async function readableChats(chats: Chats, user: number, changes: ReadonlyArray<Pick<Change, 'chat'>>) {
  const named = new Map(changes.map(({ chat }) => [chatText(chat), chat]));
  const seen = await Promise.all(
    [...named].map(async ([name, chat]) =>
      isDirect(chat) || isInChat((await chats.member(chat, user)).status) ? [name] : [],
    ),
  );
  return new Set(seen.flat());
}

/**
 * An event stream of one person. While `starting`, it loads the person's chats. While `open`, it reports the changes of
 * these chats. After it has `ended`, it reports nothing.
 */
class Stream {
  readonly #from: Sources;
  readonly #user: number;
  readonly #listener: StreamListener;
  readonly #onEnd: () => void;
  #state: 'starting' | 'open' | 'ended' = 'starting';
  readonly #resumes: boolean;
  readonly #cursors: Cursors;
  #byPartition = new Map<number, ChatRef[]>();
  readonly #unlisten = new Map<string, () => void>();
  #unlistenUser = () => {};
  readonly #drafts: DraftPace;
  #stale = true;
  #reloading = false;
  readonly #dirty = new Set<number>();
  /**
   * The partitions that are being read. Each is read independently of the others, because one master of a cluster may
   * be down.
   */
  readonly #showing = new Set<number>();
  /** For each partition, the time in ms at which the change logs of its chats must be renewed. */
  readonly #keptUntil = new Map<number, number>();

  constructor(from: Sources, user: number, cursor: string, listener: StreamListener, onEnd: () => void) {
    this.#from = from;
    this.#user = user;
    this.#listener = listener;
    this.#onEnd = onEnd;
    this.#resumes = cursor !== '';
    this.#cursors = parseCursor(cursor, from.context.keys.partitions.count);
    this.#drafts = new DraftPace(from.context.time, (chat, draft) => listener.draft(chat, draft));
  }

  async start(): Promise<void> {
    const { hints, context } = this.#from;
    this.#unlistenUser = await hints.listen(context.keys.userChannel(this.#user), (hint) => {
      const text = String(hint);
      if (text.startsWith(readHint)) {
        const [chat, message] = text.slice(readHint.length).split(' ');
        this.#listener.read(Number(chat), Number(message));
        return;
      }
      if (text.startsWith(settingsHint)) {
        this.#listener.settings(Number(text.slice(settingsHint.length)));
        return;
      }
      if (text.startsWith(scheduledHint)) {
        this.#listener.scheduled(Number(text.slice(scheduledHint.length)));
        return;
      }
      if (text === profileHint) {
        this.#listener.profile();
        return;
      }
      const draft = readPersonDraftHint(text);
      if (draft) {
        this.#listener.personDraft(draft);
        return;
      }
      this.#stale = true;
      this.check([]);
    });
    await this.#work();
    this.#state = 'open';
    this.#listener.start(cursorText(this.#cursors));
  }

  check(partitions: readonly number[] = [...this.#byPartition.keys()], reloadList = false): void {
    if (reloadList) this.#stale = true;
    for (const partition of partitions) this.#dirty.add(partition);
    if (this.#state !== 'open') return;
    // Does not wait for the chat list, because a slow load would delay changes. A failed load is retried within a
    // second.
    this.#work().catch(() => undefined);
    for (const partition of partitions) this.#catchUp(partition).catch(() => undefined);
  }

  stop(): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#onEnd();
    for (const stop of this.#unlisten.values()) stop();
    this.#unlistenUser();
    this.#drafts.end();
  }

  leave(): void {
    this.stop();
    this.#listener.leave();
  }

  async #work(): Promise<void> {
    if (!this.#reloading) {
      this.#reloading = true;
      try {
        while (this.#stale && this.#state !== 'ended') await this.#reload();
      } finally {
        this.#reloading = false;
      }
    }
    await Promise.all([...this.#dirty].map((partition) => this.#catchUp(partition)));
  }

  async #reload(): Promise<void> {
    const { context, chats } = this.#from;
    const { partitions } = context.keys;
    this.#stale = false;
    const list = await chats.listOf(this.#user);
    const present = new Set(list.map(chatText));
    for (const [name, stop] of this.#unlisten) {
      if (present.has(name)) continue;
      this.#unlisten.delete(name);
      stop();
      this.#listener.membership(parseChat(name), false);
    }
    const fresh = list.filter((chat) => !this.#unlisten.has(chatText(chat)));
    // Loads the record of a chat that is not in Redis. Such a chat has no change log, but the record contains the
    // version of its last change.
    if (this.#state === 'starting' && this.#resumes) await Promise.all(fresh.map((chat) => chats.find(chat)));
    await Promise.all(fresh.map((chat) => this.#listen(chat)));
    this.#byPartition = groupBy(list, ({ id }) => partitions.of(id));
    for (const partition of this.#byPartition.keys()) this.#dirty.add(partition);
    for (const { id } of fresh) this.#keptUntil.delete(partitions.of(id));
  }

  async #listen(chat: ChatRef): Promise<void> {
    const { context, hints } = this.#from;
    const partition = context.keys.partitions.of(chat.id);
    const stop = await hints.listen(context.keys.chatChannel(chat), (hint) => {
      const text = String(hint);
      const action = readActionHint(text);
      if (action) return this.#listener.action(chat, action);
      const draft = readDraftHint(text);
      if (draft === null) this.check([partition]);
      else if (typeof draft === 'function') this.#drafts.take(chat, draft);
      else {
        this.#drafts.drop(chat);
        this.#listener.draftStopped(chat, draft);
      }
    });
    // If the stream has ended in the meantime, ends the new subscription to the chat at once.
    if (this.#state === 'ended') return stop();
    this.#unlisten.set(chatText(chat), stop);
    if (this.#state === 'open') this.#listener.membership(chat, true);
    // Reports the complete change log of a chat, or a `gap` (lost changes), because the chat may have changed after the
    // person joined and before this check.
    const isNew = this.#state === 'starting' && !this.#resumes;
    if (!isNew && !this.#cursors.has(partition)) this.#cursors.set(partition, 1);
  }

  async #catchUp(partition: number): Promise<void> {
    if (this.#showing.has(partition)) return;
    this.#showing.add(partition);
    try {
      while (this.#state !== 'ended' && this.#dirty.delete(partition)) await this.#show(partition);
    } finally {
      this.#showing.delete(partition);
    }
  }

  async #show(partition: number): Promise<void> {
    const { context, chats, records } = this.#from;
    const list = this.#byPartition.get(partition);
    if (!list) return;
    const now = context.time.monotonic();
    const keep = now >= (this.#keptUntil.get(partition) ?? 0);
    const after = this.#cursors.get(partition) ?? 0;
    const { version, rows } = await readChanges(context, partition, after, keep, list);
    if (this.#byPartition.get(partition) !== list) {
      // If a chat was added during the read, its earlier changes have not been read yet. Reads the partition again.
      this.#dirty.add(partition);
      return;
    }
    if (keep) this.#keptUntil.set(partition, now + limits.changes_log_ttl_ms / 4);
    const ordered = rows
      .map((row) => ({
        to: String(row[4]),
        version: Math.min(Number(row[3]), version),
        change: changeOf(row),
      }))
      .sort((a, b) => a.version - b.version);
    const changes = ordered.map(({ change }) => change);
    const [related, readable] = await Promise.all([
      relatedMessages(records, changes),
      readableChats(chats, this.#user, changes),
    ]);
    for (const { to, version: at, change } of ordered) {
      if (this.#state === 'ended') return;
      this.#cursors.set(partition, at);
      if ((to !== '' && to !== String(this.#user)) || !readable.has(chatText(change.chat))) continue;
      const message = change.message && (related.get(change.message) ?? change.message);
      this.#listener.change({ cursor: cursorText(this.#cursors), ...change, message });
    }
    this.#cursors.set(partition, version);
  }
}

function addTo(counts: Map<number, number>, user: number, more: 1 | -1): number {
  const now = (counts.get(user) ?? 0) + more;
  if (now === 0) counts.delete(user);
  else counts.set(user, now);
  return now;
}

export class Streams {
  readonly #from: Sources;
  readonly #presence: Pick<Presence, 'changed' | 'close'>;
  readonly #open = new Set<Stream>();
  readonly #leaving = new Set<() => void>();
  readonly #openByUser = new Map<number, number>();
  readonly #seenByUser = new Map<number, number>();
  #closing = false;
  #ticks = 0;
  #timer: Timer | undefined;

  constructor(from: Sources, presence: Pick<Presence, 'changed' | 'close'>) {
    this.#from = from;
    this.#presence = presence;
  }

  /**
   * Starts a person's event stream. If `cursor` is given, the stream reports only changes after this cursor. If
   * `unseen` is true, the client's window is hidden, so the stream does not count as an open window. Returns a function
   * that ends the stream.
   */
  async open(user: number, cursor: string, listener: StreamListener, unseen = false): Promise<() => void> {
    const stream = new Stream(this.#from, user, cursor, listener, () => {
      this.#open.delete(stream);
      this.#count(user, -1, !unseen);
    });
    this.#count(user, 1, !unseen);
    try {
      await stream.start();
    } catch (error) {
      stream.stop();
      throw error;
    }
    this.#open.add(stream);
    this.#timer ??= this.#from.context.time.every(limits.poll_tick_ms, () => this.#onTick()).unref();
    if (this.#closing) stream.leave();
    else stream.check([]);
    return () => stream.stop();
  }

  openOf(user: number): number {
    return this.#openByUser.get(user) ?? 0;
  }

  /**
   * Counts a stream of another kind, such as a stream of reactions, against the person's limit. Returns a function that
   * removes this stream from the count, or null if the person already has too many streams.
   */
  join(user: number): (() => void) | null {
    if (this.openOf(user) >= limits.streams_per_user_max) return null;
    this.#count(user, 1, false);
    return () => this.#count(user, -1, false);
  }

  /** Calls `listener` when this node ends all streams. Returns a function that removes the listener. */
  onLeave(listener: () => void): () => void {
    this.#leaving.add(listener);
    return () => void this.#leaving.delete(listener);
  }

  count(): number {
    return this.#open.size;
  }

  close(): void {
    this.#closing = true;
    this.#from.context.time.cancel(this.#timer);
    for (const stream of [...this.#open]) stream.leave();
    for (const listener of [...this.#leaving]) listener();
    this.#presence.close();
  }

  #count(user: number, more: 1 | -1, seen: boolean): void {
    addTo(this.#openByUser, user, more);
    const now = seen ? addTo(this.#seenByUser, user, more) : null;
    if (now === 0 || (now === 1 && more === 1)) this.#presence.changed(user, now > 0);
  }

  #onTick(): void {
    if (this.#open.size === 0) {
      this.#from.context.time.cancel(this.#timer);
      this.#timer = undefined;
    }
    // Reloads the chat list regularly, because a hint about a changed list may be lost.
    const reloadList = ++this.#ticks % reloadTicks === 0;
    for (const stream of this.#open) stream.check(undefined, reloadList);
  }
}
