/** A clock that stands still until a test moves it. */
import { Time, type Timer } from '../../src/time.js';

interface Pending {
  dueMs: number;
  /** The interval of a timer that repeats. */
  readonly everyMs: number | undefined;
  readonly work: () => void;
}

class VirtualTimer implements Timer {
  readonly pending: Pending;

  constructor(pending: Pending) {
    this.pending = pending;
  }

  unref(): Timer {
    return this;
  }
}

/** Waits until every promise has settled, except those that wait for a timer or for I/O. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/**
 * Starts at the Unix time `startMs`. `driftPpm` says by how many millionths the clock runs faster than the time that
 * the test adds.
 */
export class VirtualTime extends Time {
  readonly #startMs: number;
  readonly #rate: number;
  /** The pending timers, in the order in which they were set. */
  readonly #pending = new Set<Pending>();
  #ms = 0;

  constructor({ startMs = 1_800_000_000_000, driftPpm = 0 } = {}) {
    super();
    this.#startMs = startMs;
    this.#rate = 1 + driftPpm / 1_000_000;
  }

  machine(): number {
    return Math.floor(this.#startMs + this.#ms);
  }

  monotonic(): number {
    return this.#ms;
  }

  after(ms: number, work: () => void): Timer {
    return this.#add(ms, undefined, work);
  }

  every(ms: number, work: () => void): Timer {
    return this.#add(ms, Math.max(1, ms), work);
  }

  cancel(timer: Timer | undefined): void {
    if (timer instanceof VirtualTimer) this.#pending.delete(timer.pending);
  }

  soon(work: () => void): void {
    setImmediate(work);
  }

  /** How many timers are pending. */
  get timers(): number {
    return this.#pending.size;
  }

  /** How long until the next timer is due, in ms. Infinity if no timer is pending. */
  get dueInMs(): number {
    return (this.#next(Number.POSITIVE_INFINITY)?.dueMs ?? Number.POSITIVE_INFINITY) - this.#ms;
  }

  /** Moves the clock by `ms`. Fires the timers that become due in order. Lets promises settle after each timer. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#ms + ms * this.#rate;
    await settle();
    for (let next = this.#next(endMs); next !== undefined; next = this.#next(endMs)) {
      this.#ms = Math.max(this.#ms, next.dueMs);
      if (next.everyMs === undefined) this.#pending.delete(next);
      else next.dueMs += next.everyMs;
      next.work();
      await settle();
    }
    this.#ms = endMs;
  }

  /** Moves the clock by `ms` as if the process were frozen: timers that become due fire only at the next `advance`. */
  freeze(ms: number): void {
    this.#ms += ms * this.#rate;
  }

  #add(ms: number, everyMs: number | undefined, work: () => void): VirtualTimer {
    const pending = { dueMs: this.#ms + Math.max(1, ms), everyMs, work };
    this.#pending.add(pending);
    return new VirtualTimer(pending);
  }

  /**
   * Returns the pending timer that is due first, at `endMs` or before. Of timers that are due at the same time, returns
   * the one that was set first.
   */
  #next(endMs: number): Pending | undefined {
    let first: Pending | undefined;
    for (const pending of this.#pending)
      if (pending.dueMs <= endMs && (first === undefined || pending.dueMs < first.dueMs)) first = pending;
    return first;
  }
}
