/**
 * Remembers the request of a failed or refused call if an earlier attempt may have been applied or may still be
 * applied. The store may repeat such a call, for instance after it has loaded a missing chat. The repeated call must
 * then be sent alone, under the request id of its earlier attempts. In a new combined run, the script would not find
 * the answer of these attempts.
 */
import type { Time } from '../../time.js';
import { redisLimits as limits } from '../limits.js';

interface Noted {
  readonly request: string;
  /** The time by the monotonic clock, in ms. */
  readonly until: number;
}

export class UnsettledRequests {
  /** The requests, oldest first. The map's keys are the keys that the store built for the requests. */
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
