/**
 * What a user's event stream shows: the changes of the user's chats, in the order of each partition's versions.
 *
 * A cursor names, for every partition in which the user has chats, the version up to which changes were shown. A stream
 * that comes back with its cursor gets what it missed from the chats' logs; where a log does not reach back that far, it
 * is told so (`gap`) and reads the chat anew. A chat has a log only while streams keep it, and some time after. Hints wake a
 * stream; a look each second makes good for lost ones.
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
  /** message id, 0 where none is pinned any more, or the id of a callback query */
  readonly id: string;
  /** null unless new, edited or pinned; also null when the message is cold or gone by now */
  readonly message: StoredMessage | null;
  /** answer to a callback query */
  readonly answer: Readonly<Record<string, unknown>> | null;
  /** of a pin: the person is to be notified */
  readonly notify: boolean;
  /** where a stream that has shown this change resumes */
  readonly cursor: string;
}

export interface StreamListener {
  change(change: Change): void;
  /** What happens from now on will be shown; a stream that ends now resumes here. */
  start(cursor: string): void;
  /** Something that is shown and not kept. */
  action(chat: ChatRef, text: string): void;
  /** This node leaves: nothing more will be shown here. */
  leave(): void;
}

export interface Streams {
  /** Begins to report, from `cursor` if given; a window that nobody sees (`unseen`) makes nobody present. The returned function ends it. */
  open(user: number, cursor: string, listener: StreamListener, unseen?: boolean): Promise<() => void>;
  /** How many streams of a person are open on this node, or being opened. */
  openOf(user: number): number;
  /** Counts a stream of another kind, which tells of no messages, as one of the person's; null where there are too many. The returned function ends it. */
  join(user: number): (() => void) | null;
  /** Calls `listener` when all streams end. The returned function forgets it. */
  onLeave(listener: () => void): () => void;
  /** How many are open on this node. */
  count(): number;
  /** Ends all streams, and those that are being opened. */
  close(): void;
}

/** Looks after which a stream reads its list of chats anew, hint or no hint. */
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

/** A row as a change, but for its cursor and the message that its message is about. */
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
    look: (partitions?: readonly number[], anew?: boolean) => void;
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

  /** Reads the changes of chats in pieces, up to the version at which the first piece was read. */
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
    // Later changes in later pieces are read the next time; a gap is told now, and perhaps once more.
    const shown = rows.filter((row) => Number(row[3]) <= version || String(row[1]) === 'gap');
    return { version, rows: shown };
  }

  /** Messages with those that they are about, read once for each chat. */
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

  /** Of chats that changed, those that a person may read now: the list that a stream goes by is followed by hints alone. */
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
    // The hint that a list of chats changed may be lost too.
    const anew = ++ticks % reloadTicks === 0;
    for (const stream of open) stream.look(undefined, anew);
  }, limits.poll_tick_ms);
  timer.unref();

  const openStream: Streams['open'] = async (user, cursor, listener, unseen = false) => {
    const cursors = parseCursor(cursor, keys.partitions.count);
    const unlisten = new Map<string, () => void>();
    let byPartition = new Map<number, ChatRef[]>();
    const dirty = new Set<number>();
    /** Partitions that are being read. Each by itself: on a cluster the server of one may be away. */
    const showing = new Set<number>();
    /** Until when the logs of a partition's chats need not be kept again, ms. */
    const keptUntil = new Map<number, number>();
    let stale = true;
    let reloading = false;
    let begun = false;
    let ended = false;

    const onHint = (chat: ChatRef, partition: number) => (text: string) => {
      if (text.startsWith(actionHint)) listener.action(chat, text.slice(actionHint.length));
      else look([partition]);
    };

    /** Takes up chats that were opened or joined since, and drops those that were left. */
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
      // A chat that is cold keeps no log to compare with: its record, filled, says when it last changed.
      if (first && cursor !== '') await Promise.all(fresh.map((chat) => chats.find(chat)));
      await Promise.all(
        fresh.map(async (chat) => {
          const partition = keys.partitions.of(chat.id);
          unlisten.set(chatText(chat), await hints.listen(keys.chatChannel(chat), onHint(chat, partition)));
          // A chat may change between being joined and being looked at: all of its log is shown, or `gap` told.
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
        // A chat may have been taken up meanwhile: its changes up to this version were not read.
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

    function look(partitions: readonly number[] = [...byPartition.keys()], anew = false): void {
      if (anew) stale = true;
      for (const partition of partitions) dirty.add(partition);
      if (!begun) return;
      // What fails now is looked at again in a second. A list that is long in coming holds up no change.
      work().catch(() => undefined);
      for (const partition of partitions) catchUp(partition).catch(() => undefined);
    }

    const handle = {
      look,
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
        look([]);
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
    // What a hint told of meanwhile.
    else look([]);
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
