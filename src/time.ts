/**
 * Provides time and timers. Components get a `Time` as an option, by default `systemTime`. Only this file reads clocks
 * and starts timers (decision 0056).
 */

import { performance } from 'node:perf_hooks';

const roundTripMsMax = 100;

export interface Timer {
  /** Lets the process exit while this timer is still pending. */
  unref(): Timer;
}

export interface SleepOptions {
  /** Aborting this signal ends the sleep early. The sleep then resolves as usual. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the sleep keeps the process alive. True by default. */
  readonly ref?: boolean;
}

/**
 * The clock and the timers of one node. `now` follows the time of Redis, because the machine's clock may be wrong or
 * change. Signatures, expiries, retries and removal by age use `now`. Intervals use `monotonic`.
 */
export abstract class Time {
  /** Unix time minus the monotonic clock, in ms. Undefined until Redis has answered for the first time. */
  #offsetMs: number | undefined;

  /**
   * Returns the machine's Unix time in ms. Only for values that other machines do not see, for example the time of a
   * log line.
   */
  abstract machine(): number;

  /** Returns the ms since an arbitrary start. This value never decreases. */
  abstract monotonic(): number;

  /** Calls `work` once, after `ms` milliseconds. */
  abstract after(ms: number, work: () => void): Timer;

  /** Calls `work` every `ms` milliseconds. */
  abstract every(ms: number, work: () => void): Timer;

  /** Stops a timer. Does nothing if the timer is undefined or has already fired. */
  abstract cancel(timer: Timer | undefined): void;

  /** Calls `work` after the events of this turn of the event loop. */
  abstract soon(work: () => void): void;

  /**
   * Returns the Unix time of Redis in whole milliseconds. Until Redis has answered for the first time, returns the time
   * of this machine.
   */
  now(): number {
    return this.#offsetMs === undefined ? this.machine() : Math.floor(this.#offsetMs + this.monotonic());
  }

  nowSeconds(): number {
    return Math.floor(this.now() / 1_000);
  }

  /**
   * Sets `now` from the reply to the Redis command TIME. If the round trip took too long, the reply gives only a range
   * of possible times. The clock then moves to the nearest time in this range, and `follow` returns false.
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
   * Returns the ms until the next multiple of `everyMs` on the monotonic clock, at most `everyMs` + 1. Periodic tasks
   * that wait this long run together, so that they wake an idle process less often.
   */
  // Adds 1 ms, because a timer may fire up to 1 ms early. The task would then run twice.
  untilNext(everyMs: number): number {
    return everyMs - (this.monotonic() % everyMs) + 1;
  }

  /**
   * Calls `task` at each multiple of `everyMs` (monotonic clock). Does not keep the process alive. Returns a
   * function that stops it.
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

/** This machine's time. All components of a production process use it. */
export let systemTime: Time = new SystemTime();

/**
 * Replaces `systemTime`, only in a process whose clock tests move. Must be called before the process creates any
 * component.
 */
export function replaceSystemTime(time: Time): void {
  systemTime = time;
}
