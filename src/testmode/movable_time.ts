/** A clock that runs like the machine's clock and that a test can move forward. */
import { systemTime, Time, type Timer } from '../time.js';

class MovableTimer implements Timer {
  dueMs: number;
  readonly everyMs: number | undefined;
  readonly work: () => void;
  /** The underlying timer of the machine's clock, which fires this timer. */
  armed: Timer | undefined;
  #keepsAlive = true;

  constructor(dueMs: number, everyMs: number | undefined, work: () => void) {
    this.dueMs = dueMs;
    this.everyMs = everyMs;
    this.work = work;
  }

  arm(timer: Timer): void {
    this.armed = this.#keepsAlive ? timer : timer.unref();
  }

  unref(): Timer {
    this.#keepsAlive = false;
    this.armed?.unref();
    return this;
  }
}

/**
 * `machine` stays the machine's time, because the ages of files are compared with it. `now` and `monotonic` are ahead
 * of it by the added time.
 */
export class MovableTime extends Time {
  readonly #real: Time;
  readonly #pending = new Set<MovableTimer>();
  #addedMs = 0;

  constructor(real = systemTime) {
    super();
    this.#real = real;
  }

  machine(): number {
    return this.#real.machine();
  }

  monotonic(): number {
    return this.#real.monotonic() + this.#addedMs;
  }

  after(ms: number, work: () => void): Timer {
    return this.#add(ms, undefined, work);
  }

  every(ms: number, work: () => void): Timer {
    return this.#add(ms, Math.max(1, ms), work);
  }

  cancel(timer: Timer | undefined): void {
    if (!(timer instanceof MovableTimer)) return;
    this.#pending.delete(timer);
    this.#real.cancel(timer.armed);
  }

  soon(work: () => void): void {
    this.#real.soon(work);
  }

  /** Adds the time by which this clock was moved, because Redis' own clock is not moved. */
  override follow([seconds, micros]: readonly [string, string], sentMs: number, gotMs: number): boolean {
    return super.follow([seconds, String(Number(micros) + this.#addedMs * 1_000)], sentMs, gotMs);
  }

  /**
   * Moves the clock forward by `ms` in one step. Resolves when the timers that became due have fired, in order. A
   * repeating timer fires once.
   */
  async advance(ms: number): Promise<void> {
    this.#addedMs += ms;
    // Timers with the same delay must fire in the order in which they were set, as the machine's timers do.
    for (const timer of [...this.#pending].sort((a, b) => a.dueMs - b.dueMs)) {
      this.#real.cancel(timer.armed);
      this.#arm(timer);
    }
    await this.#real.sleep(1);
  }

  #add(ms: number, everyMs: number | undefined, work: () => void): Timer {
    const timer = new MovableTimer(this.monotonic() + ms, everyMs, work);
    this.#pending.add(timer);
    this.#arm(timer);
    return timer;
  }

  #arm(timer: MovableTimer): void {
    const ms = Math.max(1, timer.dueMs - this.monotonic());
    timer.arm(this.#real.after(ms, () => this.#fire(timer)));
  }

  #fire(timer: MovableTimer): void {
    const { everyMs } = timer;
    if (everyMs === undefined) this.#pending.delete(timer);
    else {
      const lateMs = Math.max(0, this.monotonic() - timer.dueMs);
      timer.dueMs += everyMs * (1 + Math.floor(lateMs / everyMs));
      this.#arm(timer);
    }
    timer.work();
  }
}
