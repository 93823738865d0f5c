/**
 * What a worker holds of one bot's queue, by chat. At most one update of a chat is open at a time; the others wait behind it in
 * order. A chat that is parked is listed in Redis as well, and what is held of it may be forgotten at any time.
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

/** An update that goes out, and what it takes to settle it. */
export interface Opened {
  readonly delivery: Delivery;
  readonly tries: number;
}

export interface Held {
  /** Updates that are open. */
  readonly open: number;
  /** Updates that are held, open ones too, and their bytes. */
  readonly count: number;
  readonly bytes: number;
  /** A chat waits whose first update may go out. */
  readonly ready: boolean;
  add(delivery: Delivery): void;
  /** Takes up a chat that failed before, unless it is open here. */
  addAgain(again: Again): void;
  /** Opens the first update of the chat that has waited longest; null for none. */
  next(): Opened | null;
  /** The chat's open update is done with; tells whether the chat was parked. */
  settle(chat: string): boolean;
  /** Forgets a chat whose open update failed; returns the ids that were held of it, in order. */
  giveUp(chat: string): string[];
  /** Forgets what waits behind open updates, which must be parked instead; returns it by chat, with the open one. */
  spill(): Array<{ readonly chat: string; readonly ids: readonly string[] }>;
  /** Forgets all that is not open: it is in the queue no more. */
  drop(): void;
  /** The id below which all is parked or gone, given that the queue was read up to `after`. */
  safe(after: string): string;
}

export function createHeld(): Held {
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

  /** The chat whose update is open; it is closed by this. */
  function closed(name: string): Chat {
    const chat = chats.get(name);
    if (!chat?.open) throw new Error('what is settled was never opened');
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
    giveUp(name) {
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
