/**
 * The time of this process: the time of Redis, continued by the monotonic clock. The machine's own clock may be wrong, or be set while
 * the process runs, so signatures, expiries, retries and removal by age use this clock instead.
 */

/** Unix milliseconds minus the monotonic clock; undefined before the first answer of Redis. */
let offsetMs: number | undefined;

/** After a longer round trip an answer counts as late: its time is too imprecise to replace that of the clock. */
const roundTripMsMax = 100;

/**
 * Sets the clock from an answer of Redis to TIME. Redis answered between the two readings of the monotonic clock, so a late answer moves
 * the clock only as far as necessary: to the nearest time that the answer allows. Returns false for a late answer.
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

/** Unix time in whole milliseconds, from Redis; from the machine's clock before the first answer of Redis. */
export const nowMs = (): number =>
  offsetMs === undefined ? Date.now() : Math.floor(offsetMs + performance.now());

/** Returns the result of `work`, or undefined if it takes longer than `ms`; `work` is not cancelled. Rejects if `work` does. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

export const nowSeconds = (): number => Math.floor(nowMs() / 1_000);
