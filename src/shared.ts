/** Lets concurrent callers share one run of an asynchronous function. */

/**
 * Returns a function that starts `work`. If it is called while `work` is running, it returns the promise of that run,
 * which `running` returns too.
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
