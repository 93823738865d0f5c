/**
 * Event streams: the changes of a user's chats, in the order of each partition's versions.
 *
 * A cursor contains, for every partition with chats of the user, the version up to which changes were shown. A stream
 * that resumes with its cursor gets missed changes from the chats' logs. If a log does not go back that far, the stream
 * gets a `gap` and the client reloads the chat. A chat has a log only while streams keep it alive, and some time after.
 * Hints wake streams; a check every second covers lost hints.
 */
import { limits } from '../../limits.js';
import type { Hints } from '../../redis/hints.js';
import { messageKinds, unpack } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { cursorText, parseCursor } from '../core/cursors.js';
import { type ChatRef, chatText, isDirect, parseChat } from '../core/keys.js';
import type { Records } from '../core/records.js';
import { relatedId, type StoredMessage, storedMessage } from '../core/stored_message.js';
import { actionHint, type Chats, isPresent } from './chats.js';
import type { Presence } from './presence.js';

export type ChangeKind = 'n' | 'e' | 'd' | 'a' | 'p' | 'gap';

export interface Change {
  readonly chat: ChatRef;
  readonly kind: ChangeKind;
  /** message id, 0 after an unpin, or the id of a callback query */
  readonly id: string;
  /** set for new, edited and pinned messages, unless the message is not in Redis or was deleted */
  readonly message: StoredMessage | null;
  /** answer to a callback query; null for other changes */
  readonly answer: Readonly<Record<string, unknown>> | null;
  /** for a pin: whether to notify the person */
  readonly notify: boolean;
  /** where a stream that has shown this change resumes */
  readonly cursor: string;
}

export interface StreamListener {
  change(change: Change): void;
  /**
   * Reports that the stream has started: later changes will be reported, and a stream that ends now resumes at
   * `cursor`.
   */
  start(cursor: string): void;
  /** Reports a chat action, such as typing, which is not stored. */
  action(chat: ChatRef, text: string): void;
  /** Reports that this node is shutting down, after which no more changes follow. */
  leave(): void;
}

export interface Streams {
  /**
   * Starts to report changes, from `cursor` if given. `unseen`: the window is not visible, so the person does not count
   * as present. Returns the function that ends the stream.
   */
  open(user: number, cursor: string, listener: StreamListener, unseen?: boolean): Promise<() => void>;
  /** Number of a person's streams on this node, including those being opened. */
  openOf(user: number): number;
  /**
   * Counts a stream of another kind, one without messages, against the person's limit; null if there are too many.
   * Returns the function that ends it.
   */
  join(user: number): (() => void) | null;
  /** Calls `listener` when all streams end. Returns the function that unsubscribes. */
  onLeave(listener: () => void): () => void;
  /** Number of open streams on this node. */
  count(): number;
  /** Ends all streams, including those being opened. */
  close(): void;
}

/** Every this many ticks, a stream reloads its chat list even without a hint. */
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

/** Converts a row to a change, without its cursor and the message it refers to. */
function changeOf([name, kind, id, , , extra, record, peer]: RawRow): Omit<Change, 'cursor'> {
  const chat = parseChat(String(name));
  const shared = { chat, kind: String(kind) as ChangeKind, id: String(id) };
  const message = shownMessage(chat, Number(id), record, peer);
  if (shared.kind === 'p') return { ...shared, message, answer: null, notify: extra.length > 0 };
  return { ...shared, message, answer: extra.length > 0 ? unpack(extra) : null, notify: false };
}

export function createStreams(
  context: StoreContext,
  hints: Hints,
  chats: Chats,
  records: Records,
  presence: Pick<Presence, 'changed' | 'close'>,
): Streams {
  const { scripts, keys } = context;
  const open = new Set<{
    check: (partitions?: readonly number[], reloadList?: boolean) => void;
    stop: () => void;
    leave: () => void;
  }>();
  const leaving = new Set<() => void>();
  const openByUser = new Map<number, number>();
  const seenByUser = new Map<number, number>();
  let closing = false;

  const openOf = (user: number): number => openByUser.get(user) ?? 0;
  const add = (counts: Map<number, number>, user: number, more: 1 | -1): number => {
    const now = (counts.get(user) ?? 0) + more;
    if (now === 0) counts.delete(user);
    else counts.set(user, now);
    return now;
  };
  const count = (user: number, more: 1 | -1, seen: boolean) => {
    add(openByUser, user, more);
    const now = seen ? add(seenByUser, user, more) : null;
    if (now === 0 || (now === 1 && more === 1)) presence.changed(user, now > 0);
  };

  /** Reads the changes of chats in batches, up to the version at which the first batch was read. */
  async function readChanges(partition: number, after: number, keep: boolean, list: readonly ChatRef[]) {
    const at = {
      meta: keys.meta(partition),
      changes: keys.changesRoot(partition),
      chat: keys.chatRoot(partition),
      message: keys.messageRoot(partition),
    };
    let upTo: number | null = null;
    const rows: RawRow[] = [];
    for (let i = 0; i < list.length; i += limits.changes_chats_max) {
      const chats = list.slice(i, i + limits.changes_chats_max).map(chatText);
      const read = await scripts.call('chats/read_changes', partition, at, { after, keep, chats });
      upTo ??= read.version;
      rows.push(...(read.rows as RawRow[]));
    }
    const version = upTo ?? after;
    // Later changes in later batches are read next time. A gap is reported now, and perhaps once more.
    const shown = rows.filter((row) => Number(row[3]) <= version || String(row[1]) === 'gap');
    return { version, rows: shown };
  }

  /** Adds the replied and pinned messages, read once per chat. */
  async function relatedMessages(
    changes: ReadonlyArray<Pick<Change, 'chat' | 'message'>>,
  ): Promise<ReadonlyMap<StoredMessage, StoredMessage>> {
    const byChat = new Map<string, StoredMessage[]>();
    for (const { chat, message } of changes) {
      if (!message || relatedId(message.record) === 0) continue;
      byChat.set(chatText(chat), [...(byChat.get(chatText(chat)) ?? []), message]);
    }
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
   * Filters the changed chats: keeps those that the person may read now. The stream's own list may be outdated,
   * because only hints update it.
   */
  async function readable(user: number, list: readonly ChatRef[]): Promise<ReadonlySet<string>> {
    const named = new Map(list.map((chat) => [chatText(chat), chat]));
    const seen = await Promise.all(
      [...named].map(async ([name, chat]) =>
        isDirect(chat) || isPresent((await chats.member(chat, user)).status) ? [name] : [],
      ),
    );
    return new Set(seen.flat());
  }

  let ticks = 0;
  const timer = setInterval(() => {
    // Reload the chat list regularly, because the hint about its change may be lost.
    const reloadList = ++ticks % reloadTicks === 0;
    for (const stream of open) stream.check(undefined, reloadList);
  }, limits.poll_tick_ms);
  timer.unref();

  const openStream: Streams['open'] = async (user, cursor, listener, unseen = false) => {
    const cursors = parseCursor(cursor, keys.partitions.count);
    const unlisten = new Map<string, () => void>();
    let byPartition = new Map<number, ChatRef[]>();
    const dirty = new Set<number>();
    /** Partitions being read. Each is read independently, because on a cluster one master may be down. */
    const showing = new Set<number>();
    /** Time in ms until which the logs of a partition's chats need no renewal. */
    const keptUntil = new Map<number, number>();
    let stale = true;
    let reloading = false;
    let begun = false;
    let ended = false;

    const onHint = (chat: ChatRef, partition: number) => (text: string) => {
      if (text.startsWith(actionHint)) listener.action(chat, text.slice(actionHint.length));
      else check([partition]);
    };

    /** Adds newly opened or joined chats, and drops those that were left. */
    async function reload(first: boolean): Promise<void> {
      stale = false;
      const list = await chats.listOf(user);
      const present = new Set(list.map(chatText));
      for (const [name, stop] of unlisten) {
        if (present.has(name)) continue;
        unlisten.delete(name);
        stop();
      }
      const fresh = list.filter((chat) => !unlisten.has(chatText(chat)));
      // A chat missing in Redis has no log. Its record, once loaded, tells when it last changed.
      if (first && cursor !== '') await Promise.all(fresh.map((chat) => chats.find(chat)));
      await Promise.all(
        fresh.map(async (chat) => {
          const partition = keys.partitions.of(chat.id);
          unlisten.set(chatText(chat), await hints.listen(keys.chatChannel(chat), onHint(chat, partition)));
          // A chat may change between joining and this check, so its complete log is shown, or a `gap`.
          if ((!first || cursor !== '') && !cursors.has(partition)) cursors.set(partition, 1);
        }),
      );
      byPartition = new Map();
      for (const chat of list) {
        const partition = keys.partitions.of(chat.id);
        byPartition.set(partition, [...(byPartition.get(partition) ?? []), chat]);
        dirty.add(partition);
      }
      for (const chat of fresh) keptUntil.delete(keys.partitions.of(chat.id));
    }

    async function show(partition: number): Promise<void> {
      const list = byPartition.get(partition);
      if (!list) return;
      const now = performance.now();
      const keep = now >= (keptUntil.get(partition) ?? 0);
      const { version, rows } = await readChanges(partition, cursors.get(partition) ?? 0, keep, list);
      if (byPartition.get(partition) !== list) {
        // A chat was added meanwhile, and its changes up to this version were not read.
        dirty.add(partition);
        return;
      }
      if (keep) keptUntil.set(partition, now + limits.changes_log_ttl_ms / 4);
      const ordered = rows
        .map((row) => ({
          to: String(row[4]),
          version: Math.min(Number(row[3]), version),
          change: changeOf(row),
        }))
        .sort((a, b) => a.version - b.version);
      const changes = ordered.map(({ change }) => change);
      const [related, seen] = await Promise.all([
        relatedMessages(changes),
        readable(
          user,
          changes.map(({ chat }) => chat),
        ),
      ]);
      for (const { to, version: at, change } of ordered) {
        if (ended) return;
        cursors.set(partition, at);
        if ((to !== '' && to !== String(user)) || !seen.has(chatText(change.chat))) continue;
        const message = change.message && (related.get(change.message) ?? change.message);
        listener.change({ ...change, message, cursor: cursorText(cursors) });
      }
      cursors.set(partition, version);
    }

    async function catchUp(partition: number): Promise<void> {
      if (showing.has(partition)) return;
      showing.add(partition);
      try {
        while (!ended && dirty.delete(partition)) await show(partition);
      } finally {
        showing.delete(partition);
      }
    }

    async function takeUp(): Promise<void> {
      if (reloading) return;
      reloading = true;
      try {
        while (stale && !ended) await reload(!begun);
      } finally {
        reloading = false;
      }
    }

    async function work(): Promise<void> {
      await takeUp();
      await Promise.all([...dirty].map(catchUp));
    }

    function check(partitions: readonly number[] = [...byPartition.keys()], reloadList = false): void {
      if (reloadList) stale = true;
      for (const partition of partitions) dirty.add(partition);
      if (!begun) return;
      // A failure is retried within a second. A slow chat list does not delay changes.
      work().catch(() => undefined);
      for (const partition of partitions) catchUp(partition).catch(() => undefined);
    }

    const handle = {
      check,
      stop() {
        if (!ended) count(user, -1, !unseen);
        ended = true;
        open.delete(handle);
        for (const stop of unlisten.values()) stop();
        stopUser();
      },
      leave() {
        handle.stop();
        listener.leave();
      },
    };
    let stopUser = () => {};
    count(user, 1, !unseen);
    try {
      stopUser = await hints.listen(keys.userChannel(user), () => {
        stale = true;
        check([]);
      });
      await work();
      begun = true;
    } catch (error) {
      handle.stop();
      throw error;
    }
    open.add(handle);
    listener.start(cursorText(cursors));
    if (closing) handle.leave();
    // Handles hints that arrived meanwhile.
    else check([]);
    return handle.stop;
  };

  return {
    open: openStream,
    openOf,
    join(user) {
      if (openOf(user) >= limits.streams_per_user_max) return null;
      count(user, 1, false);
      return () => count(user, -1, false);
    },
    onLeave(listener) {
      leaving.add(listener);
      return () => void leaving.delete(listener);
    },
    count: () => open.size,
    close() {
      closing = true;
      clearInterval(timer);
      for (const stream of [...open]) stream.leave();
      for (const listener of [...leaving]) listener();
      presence.close();
    },
  };
}
