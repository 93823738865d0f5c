/** Lets concurrent callers share one run of an asynchronous function. */

/**
 * Returns a function that starts `work`. While `work` is running, further calls of this function return the promise of
 * the same run. `running` returns it too.
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
