/**
 * Time limits and measurements for busy machines: a limit for connections, the processor time of synchronous work, and
 * the fastest of several runs. Both measurements depend little on other load.
 */

/** How long in ms a connection of a test may take to be ready. Long enough for a busy machine. */
export const ready_ms_max = 30_000;

/** Returns the processor time in ms that this process uses during `work`. Other processes do not affect this time. */
export function processorMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/**
 * Returns the shortest time in ms of at most `runs` runs. Ends early after a run that took less than `enough` ms. A
 * busy machine delays single runs, but a service that waits for a timer delays all runs.
 */
export async function fastest(
  enough: number,
  run: (index: number) => Promise<unknown>,
  runs = 10,
): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let index = 0; index < runs && best >= enough; index++) {
    const began = performance.now();
    await run(index);
    best = Math.min(best, performance.now() - began);
  }
  return best;
}

/**
 * Returns the result of the first run that takes less than `ms`, of at most 20 runs. Use this for a state that lasts
 * only for `ms`, because a busy machine may take longer in one run. Each run must create the state again.
 */
export async function firstWithin<T>(ms: number, run: () => Promise<T>): Promise<T> {
  for (let runs = 1; ; runs++) {
    const began = performance.now();
    const result = await run();
    if (performance.now() - began < ms) return result;
    if (runs === 20) throw new Error(`each of ${runs} runs took longer than ${ms} ms`);
  }
}
