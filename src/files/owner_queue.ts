/**
 * A queue for a single worker. The owners of items take turns, so that an owner with many items does not delay the
 * others.
 */

export interface QueueBounds {
  readonly items: number;
  readonly bytes: number;
  /** The maximum number and total size of one owner's waiting items. */
  readonly ownItems: number;
  readonly ownBytes: number;
}

interface Own<T> {
  readonly waiting: Array<{ readonly item: T; readonly bytes: number }>;
  bytes: number;
}

export class OwnerQueue<T> {
  readonly #bounds: QueueBounds;
  /** The owners of waiting items, in the order of their turns. */
  readonly #owners = new Map<number, Own<T>>();
  #items = 0;
  #bytes = 0;

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds;
  }

  /**
   * Adds an item. Returns false if this owner, or all owners together, already have too many waiting items or bytes.
   * The last item may exceed the byte limit.
   */
  add(owner: number, bytes: number, item: T): boolean {
    const own = this.#owners.get(owner) ?? { waiting: [], bytes: 0 };
    const { items, bytes: bytesMax, ownItems, ownBytes } = this.#bounds;
    if (this.#items >= items || this.#bytes > bytesMax) return false;
    if (own.waiting.length >= ownItems || own.bytes > ownBytes) return false;
    own.waiting.push({ item, bytes });
    this.#owners.set(owner, own);
    this.#count(own, 1, bytes);
    return true;
  }

  /** Removes and returns the oldest item of the next owner. Returns undefined if the queue is empty. */
  take(): T | undefined {
    const [next] = this.#owners;
    if (next === undefined) return undefined;
    const [owner, own] = next;
    const first = own.waiting.shift() as Own<T>['waiting'][number];
    this.#owners.delete(owner);
    if (own.waiting.length > 0) this.#owners.set(owner, own);
    this.#count(own, -1, -first.bytes);
    return first.item;
  }

  #count(own: Own<T>, items: number, bytes: number): void {
    own.bytes += bytes;
    this.#items += items;
    this.#bytes += bytes;
  }
}
