/**
 * The updates that a worker has fetched from one bot's queue, by chat. At most one update of a chat is in flight; the
 * others wait behind it in order. Redis also lists the updates of a parked chat, so the buffered copies may be
 * discarded at any time.
 */
import type { Again, Delivery } from '../store/webhooks/deliveries.js';

interface Chat {
  readonly name: string;
  readonly waiting: Delivery[];
  open: boolean;
  parked: boolean;
  /** failures of the first update so far */
  tries: number;
}

/** An update in flight, and how often it failed before. */
export interface InFlight {
  readonly delivery: Delivery;
  readonly tries: number;
}

export interface UpdateBuffer {
  /** Updates in flight. */
  readonly open: number;
  /** Updates in the buffer, including those in flight, and their total bytes. */
  readonly count: number;
  readonly bytes: number;
  /** Some chat has an update that may be sent. */
  readonly ready: boolean;
  add(delivery: Delivery): void;
  /** Adds a chat that failed before, unless the buffer already holds it. */
  addAgain(again: Again): void;
  /** Takes the first update of the chat that has waited longest; null when no chat is ready. */
  next(): InFlight | null;
  /** Removes the chat's update in flight. Returns whether the chat was parked. */
  settle(chat: string): boolean;
  /** Discards a chat whose update failed. Returns the ids it held, in order. */
  discard(chat: string): string[];
  /**
   * Discards the updates waiting behind others in flight. Returns their ids by chat, including the one in flight: the
   * caller must park them.
   */
  spill(): Array<{ readonly chat: string; readonly ids: readonly string[] }>;
  /** Discards every update not in flight, because the queue was emptied. */
  drop(): void;
  /** The highest id up to which every update is parked or removed, given that the queue was read up to `after`. */
  safe(after: string): string;
}

export function createUpdateBuffer(): UpdateBuffer {
  const chats = new Map<string, Chat>();
  const queue: Chat[] = [];
  let open = 0;
  let count = 0;
  let bytes = 0;

  function forget(chat: Chat, from: number): void {
    for (const { bytes: size } of chat.waiting.splice(from)) {
      count--;
      bytes -= size;
    }
  }

  function hold(chat: Chat, delivery: Delivery): void {
    chat.waiting.push(delivery);
    count++;
    bytes += delivery.bytes;
    if (chat.waiting.length === 1) queue.push(chat);
  }

  function chatOf(name: string): Chat {
    let chat = chats.get(name);
    if (!chat) {
      chat = { name, waiting: [], open: false, parked: false, tries: 0 };
      chats.set(name, chat);
    }
    return chat;
  }

  /** Marks the chat's update as no longer in flight and returns the chat. */
  function closed(name: string): Chat {
    const chat = chats.get(name);
    if (!chat?.open) throw new Error('settled an update that was not in flight');
    chat.open = false;
    open--;
    return chat;
  }

  return {
    get open() {
      return open;
    },
    get count() {
      return count;
    },
    get bytes() {
      return bytes;
    },
    get ready() {
      return queue.length > 0;
    },
    add: (delivery) => hold(chatOf(delivery.chat), delivery),
    addAgain({ chat: name, tries, deliveries }) {
      if (chats.has(name)) return;
      const chat = chatOf(name);
      chat.parked = true;
      chat.tries = tries;
      for (const delivery of deliveries) hold(chat, delivery);
    },
    next() {
      const chat = queue.shift();
      if (chat === undefined) return null;
      chat.open = true;
      open++;
      return { delivery: chat.waiting[0] as Delivery, tries: chat.tries };
    },
    settle(name) {
      const chat = closed(name);
      const [first] = chat.waiting.splice(0, 1) as [Delivery];
      count--;
      bytes -= first.bytes;
      chat.tries = 0;
      if (chat.waiting.length > 0) queue.push(chat);
      else chats.delete(name);
      return chat.parked;
    },
    discard(name) {
      const chat = closed(name);
      const ids = chat.waiting.map(({ id }) => id);
      forget(chat, 0);
      chats.delete(name);
      return ids;
    },
    spill() {
      const spilled = [];
      for (const chat of chats.values()) {
        if (!chat.open || chat.waiting.length < 2) continue;
        if (!chat.parked) spilled.push({ chat: chat.name, ids: chat.waiting.map(({ id }) => id) });
        chat.parked = true;
        forget(chat, 1);
      }
      return spilled;
    },
    drop() {
      queue.length = 0;
      for (const chat of chats.values()) {
        forget(chat, chat.open ? 1 : 0);
        if (!chat.open) chats.delete(chat.name);
      }
    },
    safe(after) {
      let least = Number(after) + 1;
      for (const { parked, waiting } of chats.values())
        if (!parked) least = Math.min(least, Number(waiting[0]?.id ?? least));
      return String(least - 1);
    },
  };
}
