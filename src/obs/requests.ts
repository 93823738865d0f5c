/** Requests of a front by what was called, how it ended and how long it took. */
import { Counts, Distributions } from './distribution.js';
import type { Figure } from './metrics.js';

export interface RequestMeter {
  /** `call` is a name of the documents, never anything of the request itself; status 0: the client went before the answer. */
  over(call: string, status: number, ms: number): void;
  readonly figures: readonly Figure[];
}

export function createRequestMeter(): RequestMeter {
  const counts = new Counts();
  const times = new Distributions();
  return {
    over(call, status, ms) {
      counts.add(call, status);
      times.of(call).observe(ms);
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
