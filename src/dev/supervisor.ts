/**
 * Restarts a process whenever it ends by itself. The pause before a restart doubles from 100 ms up to 5 s. After a run
 * of at least 10 s, the pause is 100 ms again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from './refusal.js';

const pause_ms_min = 100;
const pause_ms_max = 5_000;
const healthy_ms = 10_000;

export interface Running {
  readonly pid: number;
  readonly exited: Promise<string>;
  /** Shuts the process down. If `hurry` is aborted, kills it after at most one second. */
  stop(hurry?: AbortSignal): Promise<void>;
}

export interface Supervised {
  readonly name: string;
  readonly pid: number | undefined;
  stop(hurry?: AbortSignal): Promise<void>;
}

export interface Supervision<T extends Running> {
  readonly name: string;
  /** Starts the process again and resolves when it accepts requests. Stops trying when the signal is aborted. */
  start(signal: AbortSignal): Promise<T>;
  readonly log: (line: string) => void;
  readonly onChange: () => void;
}

/** Restarts the process whenever it ends. `first` is the instance that is already running. */
export function supervise<T extends Running>(first: T, options: Supervision<T>): Supervised {
  const stopping = new AbortController();
  let running: T | undefined = first;

  const serve = async (): Promise<void> => {
    let pause = pause_ms_min;
    while (running) {
      const since = performance.now();
      const how = await running.exited;
      running = undefined;
      if (stopping.signal.aborted) return;
      options.onChange();
      if (performance.now() - since >= healthy_ms) pause = pause_ms_min;
      options.log(`${options.name} ended (${how}); restarting in ${pause / 1000} s`);
      pause = await restart(pause);
      if (stopping.signal.aborted) return;
      options.onChange();
    }
  };

  /** Retries until the process accepts requests or supervision stops. Returns the pause before the next restart. */
  const restart = async (pause: number): Promise<number> => {
    for (let wait = pause; ; ) {
      await sleep(wait, undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return wait;
      wait = Math.min(wait * 2, pause_ms_max);
      try {
        running = await options.start(stopping.signal);
        options.log(`${options.name} is running again (pid ${running.pid})`);
        return wait;
      } catch (error) {
        if (stopping.signal.aborted) return wait;
        options.log(`${options.name} could not be started: ${reasonOf(error)}; retrying in ${wait / 1000} s`);
      }
    }
  };

  const served = serve();
  return {
    name: options.name,
    get pid() {
      return running?.pid;
    },
    async stop(hurry) {
      stopping.abort();
      await running?.stop(hurry);
      await served;
      // Stops the process again, because a restart may have succeeded before it could be cancelled.
      await running?.stop(hurry);
    },
  };
}
