/**
 * The time of this process: what Redis tells, carried on by the monotonic clock. The machine's own clock may be wrong, or be set
 * while the process runs, so nothing that is signed, expires, is retried or is removed by its age goes by it.
 */

/** Unix milliseconds minus the monotonic clock; undefined until Redis was asked. */
let offsetMs: number | undefined;

/** Round trip above which an answer says too little of when it was made. */
const roundTripMsMax = 100;

/**
 * Takes over what Redis answered to TIME. The answer was made between the two readings of the monotonic clock, so a late one moves
 * the clock only as far as it must: to the nearest time that the answer allows. Returns false for a late one.
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

/** Unix time in whole milliseconds by the clock of Redis; by the machine's until Redis was asked. */
export const nowMs = (): number =>
  offsetMs === undefined ? Date.now() : Math.floor(offsetMs + performance.now());

/** What `work` gives, or undefined after `ms` while it goes on. Rejects as `work` does. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

export const nowSeconds = (): number => Math.floor(nowMs() / 1_000);
