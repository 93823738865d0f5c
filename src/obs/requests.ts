/** Requests of a front by what was called, how it ended and how long it took. */
import { Counts, Distributions } from './distribution.js';
import type { Figure } from './metrics.js';

export interface RequestMeter {
  /** For how many requests the time of the next one stands; 0 when it is not taken. */
  weight(): number;
  /** `call` is a name of the documents, never anything of the request itself; status 0: the client went before the answer. */
  over(call: string, status: number, ms: number, weight: number): void;
  readonly figures: readonly Figure[];
}

/** So many requests of a second are timed one by one; of those beyond, one in `sampled` stands for all: to read the clock twice costs
 * a call that is answered from memory a thirtieth of its time. */
const timedEach = 1_000;
const sampled = 16;

export function createRequestMeter(): RequestMeter {
  let ofSecond = 0;
  setInterval(() => {
    ofSecond = 0;
  }, 1_000).unref();
  const counts = new Counts();
  const times = new Distributions();
  return {
    weight() {
      if (++ofSecond <= timedEach) return 1;
      return ofSecond % sampled === 0 ? sampled : 0;
    },
    over(call, status, ms, weight) {
      counts.add(call, status);
      if (weight > 0) times.of(call).observe(ms, weight);
    },
    figures: [
      {
        name: 'petrel_requests_total',
        help: 'Requests by what was called and status; 0 where the client went before the answer.',
        kind: 'counter',
        labels: ['call', 'status'],
        read: () => counts.rows(),
      },
      {
        name: 'petrel_request_seconds',
        help: 'Time from the head of a request to the end of its answer; polls and streams wait on purpose.',
        kind: 'histogram',
        labels: ['call'],
        *read() {
          for (const [call, distribution] of times.byName) yield [[call], distribution];
        },
      },
    ],
  };
}
