/**
 * Provides the time of this process, which starts from the time of Redis and advances with the monotonic clock.
 * Signatures, expiries, retries and removal by age use it, because the machine's own clock may be wrong or change.
 */

/** The difference between Unix time and the monotonic clock, in ms. Undefined before the first answer of Redis. */
let offsetMs: number | undefined;

const roundTripMsMax = 100;

/**
 * Sets the clock from the answer of Redis to TIME, which Redis gave between the two readings of the monotonic clock. A
 * late answer only gives a range of possible times, and the clock moves to the nearest time in that range. Returns
 * false for a late answer.
 */
export function setClock(
  [seconds, micros]: readonly [string, string],
  sentMs: number,
  gotMs: number,
): boolean {
  const timeMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
  const isLate = gotMs - sentMs > roundTripMsMax;
  offsetMs =
    isLate && offsetMs !== undefined
      ? Math.min(Math.max(offsetMs, timeMs - gotMs), timeMs - sentMs)
      : timeMs - (sentMs + gotMs) / 2;
  return !isLate;
}

/** Returns the Unix time of Redis in whole milliseconds. Uses the machine's clock until Redis has first answered. */
export const nowMs = (): number =>
  offsetMs === undefined ? Date.now() : Math.floor(offsetMs + performance.now());

/**
 * Returns the result of `work`, or undefined if `work` takes longer than `ms`. Does not cancel `work`. Rejects if
 * `work` rejects.
 */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/**
 * Returns a function that starts `work`. A call during a run gets the result of that run. `running` returns the run in
 * progress.
 */
export function shared<A extends readonly unknown[], T>(work: (...args: A) => Promise<T>) {
  let running: Promise<T> | undefined;
  const run = (...args: A): Promise<T> => {
    running ??= work(...args).finally(() => {
      running = undefined;
    });
    return running;
  };
  return Object.assign(run, { running: () => running });
}

/**
 * Returns the milliseconds until the next multiple of `everyMs` on the monotonic clock, at most `everyMs` + 1. Periodic
 * tasks that wait this long wake an idle process together.
 */
// Adds a millisecond, because a timer may fire up to 1 ms early and would then fire twice.
export const untilNext = (everyMs: number): number => everyMs - (performance.now() % everyMs) + 1;

/**
 * Calls `task` at each multiple of `everyMs` on the monotonic clock. The timer does not keep the process alive. Returns
 * a function that stops the timer.
 */
export function repeat(everyMs: number, task: () => void): () => void {
  let timer: NodeJS.Timeout;
  const schedule = () => {
    timer = setTimeout(() => {
      schedule();
      task();
    }, untilNext(everyMs)).unref();
  };
  schedule();
  return () => clearTimeout(timer);
}

export const nowSeconds = (): number => Math.floor(nowMs() / 1_000);
