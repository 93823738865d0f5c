/**
 * Keeps the updates that a worker has fetched from one bot's queue, in a list for each chat. At most one update per
 * chat is in flight. The chat's other updates wait behind it in order. A chat is parked if Redis also keeps its updates
 * for a retry. This buffer may drop the updates of a parked chat.
 */
import type { Again, Delivery } from '../store/webhooks/deliveries.js';

interface Chat {
  readonly name: string;
  readonly waiting: Delivery[];
  open: boolean;
  parked: boolean;
  tries: number;
}

export interface InFlight {
  readonly delivery: Delivery;
  readonly tries: number;
}

/** `#queue` contains the chats whose first update may be sent. A chat is open while its first update is in flight. */
export class UpdateBuffer {
  readonly #chats = new Map<string, Chat>();
  readonly #queue: Chat[] = [];
  #open = 0;
  #count = 0;
  #bytes = 0;

  get open(): number {
    return this.#open;
  }

  /** The number of updates, including updates in flight. */
  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get ready(): boolean {
    return this.#queue.length > 0;
  }

  add(delivery: Delivery): void {
    this.#hold(this.#chatOf(delivery.chat), delivery);
  }

  addAgain({ chat: name, tries, deliveries }: Again): void {
    if (this.#chats.has(name)) return;
    const chat = this.#chatOf(name);
    chat.parked = true;
    chat.tries = tries;
    for (const delivery of deliveries) this.#hold(chat, delivery);
  }

  /** Takes the first update of the chat that has been ready longest, or null if no chat is ready. */
  next(): InFlight | null {
    const chat = this.#queue.shift();
    if (chat === undefined) return null;
    chat.open = true;
    this.#open++;
    return { delivery: chat.waiting[0] as Delivery, tries: chat.tries };
  }

  /** Removes the chat's update that was in flight. Returns whether the chat was parked. */
  settle(name: string): boolean {
    const chat = this.#closed(name);
    this.#forget(chat, 0, 1);
    chat.tries = 0;
    if (chat.waiting.length > 0) this.#queue.push(chat);
    else this.#chats.delete(name);
    return chat.parked;
  }

  discard(name: string): string[] {
    const chat = this.#closed(name);
    const ids = chat.waiting.map(({ id }) => id);
    this.#forget(chat, 0);
    this.#chats.delete(name);
    return ids;
  }

  /**
   * Drops the updates that wait behind an update in flight. Returns the affected chats, each with the ids of the
   * updates that the caller must park in Redis. These ids include the update in flight.
   */
  spill(): Array<{ readonly chat: string; readonly ids: readonly string[] }> {
    const spilled = [];
    for (const chat of this.#chats.values()) {
      if (!chat.open || chat.waiting.length < 2) continue;
      if (!chat.parked) spilled.push({ chat: chat.name, ids: chat.waiting.map(({ id }) => id) });
      chat.parked = true;
      this.#forget(chat, 1);
    }
    return spilled;
  }

  /** Drops updates with ids up to `last`, because the queue has dropped them. Keeps updates in flight. */
  drop(last: number): void {
    for (const chat of this.#chats.values()) {
      const old = chat.waiting.filter(({ id }) => Number(id) <= last).length;
      if (old === 0) continue;
      this.#forget(chat, chat.open ? 1 : 0, chat.open ? old - 1 : old);
      // Resets the chat's number of failures, because the failed update was dropped. The queue in Redis has dropped the
      // chat's list of parked updates too.
      chat.tries = 0;
      chat.parked = false;
      if (chat.waiting.length === 0) this.#chats.delete(chat.name);
    }
    this.#queue.splice(0, this.#queue.length, ...this.#queue.filter(({ waiting }) => waiting.length > 0));
  }

  /**
   * Returns the highest id such that all updates up to this id are parked or removed. `after` is the id of the last
   * update that was fetched from the queue.
   */
  safe(after: number): string {
    let least = after + 1;
    for (const { parked, waiting } of this.#chats.values())
      if (!parked) least = Math.min(least, Number(waiting[0]?.id ?? least));
    return String(least - 1);
  }

  #chatOf(name: string): Chat {
    let chat = this.#chats.get(name);
    if (!chat) {
      chat = { name, waiting: [], open: false, parked: false, tries: 0 };
      this.#chats.set(name, chat);
    }
    return chat;
  }

  #hold(chat: Chat, delivery: Delivery): void {
    chat.waiting.push(delivery);
    this.#count++;
    this.#bytes += delivery.bytes;
    if (chat.waiting.length === 1) this.#queue.push(chat);
  }

  #forget(chat: Chat, from: number, most = chat.waiting.length): void {
    for (const { bytes } of chat.waiting.splice(from, most)) {
      this.#count--;
      this.#bytes -= bytes;
    }
  }

  #closed(name: string): Chat {
    const chat = this.#chats.get(name);
    if (!chat?.open) throw new Error('settled an update that was not in flight');
    chat.open = false;
    this.#open--;
    return chat;
  }
}
