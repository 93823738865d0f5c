/**
 * A clock that runs like the clock of the machine. A test with real servers can move this clock forward instead of
 * waiting.
 */
import { Time, type Timer } from '../../src/time.js';

class RunningTimer implements Timer {
  dueMs: number;
  /** The interval of a timer that repeats. */
  readonly everyMs: number | undefined;
  readonly work: () => void;
  real: NodeJS.Timeout | undefined;
  #kept = true;

  constructor(dueMs: number, everyMs: number | undefined, work: () => void) {
    this.dueMs = dueMs;
    this.everyMs = everyMs;
    this.work = work;
  }

  unref(): Timer {
    this.#kept = false;
    this.real?.unref();
    return this;
  }

  arm(ms: number, fire: () => void): void {
    clearTimeout(this.real);
    this.real = setTimeout(fire, Math.max(1, ms));
    if (!this.#kept) this.real.unref();
  }
}

export class RunningTime extends Time {
  readonly #pending = new Set<RunningTimer>();
  #skippedMs = 0;

  machine(): number {
    return Math.floor(Date.now() + this.#skippedMs);
  }

  monotonic(): number {
    return performance.now() + this.#skippedMs;
  }

  after(ms: number, work: () => void): Timer {
    return this.#add(ms, undefined, work);
  }

  every(ms: number, work: () => void): Timer {
    return this.#add(ms, ms, work);
  }

  cancel(timer: Timer | undefined): void {
    if (!(timer instanceof RunningTimer)) return;
    clearTimeout(timer.real);
    this.#pending.delete(timer);
  }

  soon(work: () => void): void {
    setImmediate(work);
  }

  /**
   * Moves the clock by `ms` immediately. Timers that become due fire in order. Each timer sees the time at which it was
   * due.
   */
  skip(ms: number): void {
    const end = this.monotonic() + ms;
    for (let next = this.#first(); next !== undefined && next.dueMs <= end; next = this.#first()) {
      this.#moveTo(next.dueMs);
      this.#fire(next);
    }
    this.#moveTo(end);
    for (const timer of this.#pending) this.#arm(timer);
  }

  #moveTo(ms: number): void {
    this.#skippedMs += Math.max(0, ms - this.monotonic());
  }

  #add(ms: number, everyMs: number | undefined, work: () => void): RunningTimer {
    const timer = new RunningTimer(this.monotonic() + ms, everyMs, work);
    this.#pending.add(timer);
    this.#arm(timer);
    return timer;
  }

  #arm(timer: RunningTimer): void {
    timer.arm(timer.dueMs - this.monotonic(), () => this.#fire(timer));
  }

  #fire(timer: RunningTimer): void {
    if (timer.everyMs === undefined) this.cancel(timer);
    else {
      timer.dueMs += timer.everyMs;
      this.#arm(timer);
    }
    timer.work();
  }

  #first(): RunningTimer | undefined {
    let first: RunningTimer | undefined;
    for (const timer of this.#pending) if (first === undefined || timer.dueMs < first.dueMs) first = timer;
    return first;
  }
}
