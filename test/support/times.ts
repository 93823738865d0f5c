/**
 * Measures times in two ways that a busy machine distorts little: processor time of synchronous work, and the fastest
 * of several runs.
 */

/** Returns the processor time of this process in ms during `work`. Other processes do not affect it. */
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
