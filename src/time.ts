/**
 * Provides time and timers. Components get a `Time` as an option, and use `systemTime` by default. Only this file reads
 * clocks and starts timers (decision 0056).
 */

import { performance } from 'node:perf_hooks';

const roundTripMsMax = 100;

export interface Timer {
  /** Lets the process exit while the timer is pending. */
  unref(): Timer;
}

export interface SleepOptions {
  /** Ends the sleep early. The sleep then resolves too. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the sleep keeps the process alive. True by default. */
  readonly ref?: boolean;
}

/**
 * The clock and the timers of one node. `now` follows the time of Redis, because the machine's own clock may be wrong
 * or change. Signatures, expiries, retries and removal by age use `now`. Intervals use `monotonic`.
 */
export abstract class Time {
  /**
   * The difference between Unix time and the monotonic clock, in ms. Undefined until Redis has answered for the first
   * time.
   */
  #offsetMs: number | undefined;

  /**
   * Returns the Unix time of the machine in ms. Use this time only for values that other machines do not see, such as
   * the time of a log line.
   */
  abstract machine(): number;

  /** Returns the time in ms since an arbitrary start. This time never goes back. */
  abstract monotonic(): number;

  /** Calls `work` once, after `ms` milliseconds. */
  abstract after(ms: number, work: () => void): Timer;

  /** Calls `work` every `ms` milliseconds. */
  abstract every(ms: number, work: () => void): Timer;

  /** Stops a timer. Does nothing if there is no timer, or if the timer has already fired. */
  abstract cancel(timer: Timer | undefined): void;

  /** Calls `work` after the events of this turn of the event loop. */
  abstract soon(work: () => void): void;

  /** Returns the Unix time of Redis in whole milliseconds. Uses the machine's clock until Redis has first answered. */
  now(): number {
    return this.#offsetMs === undefined ? this.machine() : Math.floor(this.#offsetMs + this.monotonic());
  }

  nowSeconds(): number {
    return Math.floor(this.now() / 1_000);
  }

  /**
   * Sets `now` from the reply of TIME. Redis sent the reply between two readings of the monotonic clock. If the reply
   * was late, the time is known only as a range, and the clock moves to the nearest time in this range. Returns false
   * for a late reply.
   */
  follow([seconds, micros]: readonly [string, string], sentMs: number, gotMs: number): boolean {
    const timeMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
    const isLate = gotMs - sentMs > roundTripMsMax;
    this.#offsetMs =
      isLate && this.#offsetMs !== undefined
        ? Math.min(Math.max(this.#offsetMs, timeMs - gotMs), timeMs - sentMs)
        : timeMs - (sentMs + gotMs) / 2;
    return !isLate;
  }

  /** Waits for `ms`. Never rejects. */
  sleep(ms: number, { signal, ref = true }: SleepOptions = {}): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const end = () => {
        signal?.removeEventListener('abort', end);
        this.cancel(timer);
        resolve();
      };
      const timer = this.after(ms, end);
      if (!ref) timer.unref();
      signal?.addEventListener('abort', end);
    });
  }

  /**
   * Returns the result of `work`, or undefined if `work` takes longer than `ms`. Does not cancel `work`. Rejects if
   * `work` rejects.
   */
  within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
    let timer: Timer | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = this.after(ms, () => resolve(undefined));
    });
    return Promise.race([work, late]).finally(() => this.cancel(timer));
  }

  /** Returns a signal that is aborted after `ms`. Does not keep the process alive. */
  deadline(ms: number): AbortSignal {
    const controller = new AbortController();
    const late = () => controller.abort(new DOMException(`took longer than ${ms} ms`, 'TimeoutError'));
    this.after(ms, late).unref();
    return controller.signal;
  }

  /**
   * Returns the milliseconds until the next multiple of `everyMs` on the monotonic clock, at most `everyMs` + 1.
   * Periodic tasks that wait this long all wake an idle process at the same moment.
   */
  // Adds a millisecond, because a timer may fire up to 1 ms early and would then fire twice.
  untilNext(everyMs: number): number {
    return everyMs - (this.monotonic() % everyMs) + 1;
  }

  /**
   * Calls `task` at each multiple of `everyMs` on the monotonic clock. The timer does not keep the process alive.
   * Returns a function that stops the timer.
   */
  repeat(everyMs: number, task: () => void): () => void {
    let timer: Timer;
    const schedule = () => {
      timer = this.after(this.untilNext(everyMs), () => {
        schedule();
        task();
      }).unref();
    };
    schedule();
    return () => this.cancel(timer);
  }
}

class SystemTime extends Time {
  machine(): number {
    return Date.now();
  }

  monotonic(): number {
    return performance.now();
  }

  after(ms: number, work: () => void): Timer {
    return setTimeout(work, ms);
  }

  every(ms: number, work: () => void): Timer {
    return setInterval(work, ms);
  }

  cancel(timer: Timer | undefined): void {
    clearTimeout(timer as NodeJS.Timeout | undefined);
  }

  soon(work: () => void): void {
    setImmediate(work);
  }
}

/** The time of this machine. All components of a production process use it. */
export let systemTime: Time = new SystemTime();

/**
 * Replaces `systemTime`. Only for a process whose clock is moved by tests. Call this before the process creates any
 * component.
 */
export function replaceSystemTime(time: Time): void {
  systemTime = time;
}
