/**
 * Remembers under which request id a call with an unknown outcome was sent. One of its attempts may have been applied
 * or may still be applied. If the store repeats the call, for instance after it has loaded a missing chat, the call
 * must be sent alone, under the same request id. In a new combined run, the script would not find the answers of the
 * earlier attempts.
 */
import type { Time } from '../../time.js';
import { redisLimits as limits } from '../limits.js';

interface Noted {
  readonly request: string;
  /** The monotonic time in ms at which the request id is forgotten. */
  readonly until: number;
}

export class UnsettledRequests {
  /**
   * The remembered request ids, oldest first. Each is stored under the request key that the store built for the call.
   */
  readonly #noted = new Map<string, Noted>();
  readonly #time: Pick<Time, 'monotonic'>;

  constructor(time: Pick<Time, 'monotonic'>) {
    this.#time = time;
  }

  keep(key: string, request: string): void {
    const now = this.#time.monotonic();
    this.#noted.delete(key);
    this.#noted.set(key, { request, until: now + limits.unsettled_request_ms });
    for (const [oldest, { until }] of this.#noted) {
      if (until > now && this.#noted.size <= limits.unsettled_requests_max) break;
      this.#noted.delete(oldest);
    }
  }

  /** If this call was sent before and its outcome is unknown, returns the request id of that attempt. */
  take(key: unknown): string | undefined {
    return this.#noted.size === 0 ? undefined : this.#noted.get(key as string)?.request;
  }
}
