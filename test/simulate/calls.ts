/**
 * Defines how simulated clients call fronts. Also decides when a call with an unknown outcome can no longer take
 * effect.
 */
import { ApiError } from '../../src/errors.js';
import type { SimulatedProcess } from './process.js';
import type { SimulatedRedis } from './redis.js';
import type { Scheduler } from './scheduler.js';

export const isUnknown = (error: unknown) =>
  error instanceof ApiError && (error.kind === 'unavailable' || error.kind === 'not_durable');

/** The attempts of one call. A process may continue an attempt that the client has given up. */
export class Call {
  readonly #attempts = new Set<{ readonly front: SimulatedProcess }>();

  add(front: SimulatedProcess, attempt: Promise<unknown>): void {
    const added = { front };
    this.#attempts.add(added);
    const ended = () => this.#attempts.delete(added);
    attempt.then(ended, ended);
  }

  get running(): boolean {
    return [...this.#attempts].some(({ front }) => front.alive);
  }
}

/**
 * Calls fronts until one of them answers. `again` is false for the first attempt only. Returns undefined if the outcome
 * is unknown.
 */
export type Ask = <T>(
  call: Call,
  work: (front: SimulatedProcess, again: boolean) => Promise<T>,
) => Promise<T | undefined>;

/**
 * The calls with an unknown outcome that may still take effect. Either a process continues an attempt, or Redis has not
 * yet run a command that was sent before the last attempt ended.
 */
export class OpenCalls {
  readonly #scheduler: Scheduler;
  readonly #redis: SimulatedRedis;
  readonly #open = new Set<{ readonly call: Call; readonly closed: () => void; endedAt: number | null }>();

  constructor(scheduler: Scheduler, redis: SimulatedRedis) {
    this.#scheduler = scheduler;
    this.#redis = redis;
  }

  /** Calls `closed` as soon as the given call can no longer take effect. */
  add(call: Call, closed: () => void): void {
    this.#open.add({ call, closed, endedAt: null });
  }

  get size(): number {
    return this.#open.size;
  }

  check(): void {
    if (this.#open.size === 0) return;
    const oldest = this.#redis.oldestStep();
    for (const each of this.#open) {
      if (each.endedAt === null && !each.call.running) each.endedAt = this.#scheduler.steps;
      if (each.endedAt === null || oldest <= each.endedAt) continue;
      this.#open.delete(each);
      each.closed();
    }
  }
}
