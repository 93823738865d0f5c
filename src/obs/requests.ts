/** Requests of a front by what was called, how it ended and how long it took. */
import { Counts, Distributions } from './distribution.js';
import type { Figure } from './metrics.js';

export interface RequestMeter {
  /** For how many requests the time of the next one stands; 0 when it is not taken. */
  weight(): number;
  /** `call` is a name of the documents, never anything of the request itself; status 0: the client went before the answer. */
  over(call: string, status: number, ms: number, weight: number): void;
  /** The calls that were made most often, at most `max` of them, and all others in one row under the name `other`. */
  told(max: number): CallFigures[];
  readonly figures: readonly Figure[];
}

/** What became of the calls of one name since the start. */
export interface CallFigures {
  readonly call: string;
  readonly ok: number;
  /** 4xx but 429 */
  readonly refused: number;
  /** 429 */
  readonly slowed: number;
  /** 5xx */
  readonly failed: number;
  /** the client went before the answer */
  readonly gone: number;
  /** By bucket of `durationBounds`. */
  readonly times: number[];
}

const kindOf = (status: number) =>
  status === 0
    ? 'gone'
    : status === 429
      ? 'slowed'
      : status >= 500
        ? 'failed'
        : status >= 400
          ? 'refused'
          : 'ok';

function addUp(call: string, rows: readonly CallFigures[]): CallFigures {
  const sum = (of: (row: CallFigures) => number) => rows.reduce((total, row) => total + of(row), 0);
  return {
    call,
    ok: sum((row) => row.ok),
    refused: sum((row) => row.refused),
    slowed: sum((row) => row.slowed),
    failed: sum((row) => row.failed),
    gone: sum((row) => row.gone),
    times: (rows[0]?.times ?? []).map((_, i) => sum((row) => row.times[i] ?? 0)),
  };
}

/** Their files are many, and told of together. */
const ownPages = /^\/(app|docs|ops)(?![^/])/;

const totalOf = ({ ok, refused, slowed, failed, gone }: CallFigures) => ok + refused + slowed + failed + gone;

/** So many requests of a second are timed one by one; of those beyond, one in `sampled` stands for all: to read the clock twice costs
 * a call that is answered from memory a thirtieth of its time. */
const timedEach = 1_000;
const sampled = 16;

export function createRequestMeter(): RequestMeter {
  let ofSecond = 0;
  const nextSecond = () => {
    ofSecond = 0;
  };
  const counts = new Counts();
  const times = new Distributions();
  return {
    weight() {
      if (++ofSecond === 1) setTimeout(nextSecond, 1_000).unref();
      if (ofSecond <= timedEach) return 1;
      return ofSecond % sampled === 0 ? sampled : 0;
    },
    over(call, status, ms, weight) {
      counts.add(call, status);
      if (weight > 0) times.of(call).observe(ms, weight);
    },
    told(max) {
      const found = new Map<string, CallFigures[]>();
      for (const [call, byStatus] of counts.byName) {
        const row = { call, ok: 0, refused: 0, slowed: 0, failed: 0, gone: 0 };
        for (const [status, count] of byStatus) row[kindOf(Number(status))] += count;
        const name = ownPages.exec(call)?.[0] ?? call;
        found.set(name, [...(found.get(name) ?? []), { ...row, times: [...times.of(call).counts] }]);
      }
      const rows = [...found].map(([name, same]) => addUp(name, same));
      if (rows.length <= max) return rows;
      rows.sort((a, b) => totalOf(b) - totalOf(a));
      return [...rows.slice(0, max - 1), addUp('other', rows.slice(max - 1))];
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
