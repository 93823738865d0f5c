/** Gives folders that do not get a `Time` yet the system's time. Decision 0056 replaces these functions. */
import { systemTime } from './time.js';

export const nowMs = (): number => systemTime.now();
export const nowSeconds = (): number => systemTime.nowSeconds();
export const setClock: typeof systemTime.follow = (answer, sentMs, gotMs) =>
  systemTime.follow(answer, sentMs, gotMs);
export const within = <T>(ms: number, work: Promise<T>): Promise<T | undefined> =>
  systemTime.within(ms, work);
export const untilNext = (everyMs: number): number => systemTime.untilNext(everyMs);
export const repeat = (everyMs: number, task: () => void): (() => void) => systemTime.repeat(everyMs, task);

/**
 * Returns a function that starts `work`. If it is called while `work` runs, it returns the same promise. `running`
 * returns the promise of the current run.
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
