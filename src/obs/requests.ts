/** Counts a front's requests by call, outcome and duration. */
import { systemTime } from '../time.js';
import { Counts, Distribution, Distributions } from './distribution.js';
import type { Figure } from './metrics.js';

export type RequestMeter = ReturnType<typeof createRequestMeter>;

export interface CallFigures {
  readonly call: string;
  readonly ok: number;
  /** status 4xx except 429 */
  readonly refused: number;
  /** status 429 */
  readonly slowed: number;
  /** status 5xx */
  readonly failed: number;
  /** The requests whose client disconnected before the answer. */
  readonly gone: number;
  readonly times: number[];
}

/** Returns the class of a status for counting. 0 means that the client disconnected before the answer. */
export const kindOf = (status: number) =>
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

/** The paths of pages. All files of a page count as one call. */
const ownPages = /^\/(app|docs|ops)(?![^/])/;

/** The long polls and streams, which wait for updates on purpose. */
const waits = /^(getUpdates|streamUpdates|\/api\/stream)/;

const totalOf = ({ ok, refused, slowed, failed, gone }: CallFigures) => ok + refused + slowed + failed + gone;

/**
 * How many requests of each second are timed. Of the later requests in that second, only one in `sampled` is timed, and
 * its duration counts `sampled` times. Timing every request would make calls that are answered from memory 3 % slower.
 */
const timedEach = 1_000;
const sampled = 16;

export function createRequestMeter(time = systemTime) {
  let ofSecond = 0;
  const nextSecond = () => {
    ofSecond = 0;
  };
  const counts = new Counts();
  const times = new Distributions();
  return {
    weight() {
      if (++ofSecond === 1) time.after(1_000, nextSecond).unref();
      if (ofSecond <= timedEach) return 1;
      return ofSecond % sampled === 0 ? sampled : 0;
    },
    /**
     * Counts a request that has ended. `call` is a name from the documents, never text from the request. `status` is 0
     * if the client disconnected before the answer.
     */
    over(call: string, status: number, ms: number, weight: number) {
      counts.add(call, status);
      if (weight > 0) times.of(call).observe(ms, weight);
    },
    /** Returns the sums over all calls. `times` excludes long polls and streams, which wait for updates on purpose. */
    totals(): Omit<CallFigures, 'call'> {
      const sum = { ok: 0, refused: 0, slowed: 0, failed: 0, gone: 0 };
      for (const byStatus of counts.byName.values())
        for (const [status, count] of byStatus) sum[kindOf(Number(status))] += count;
      const quick = new Distribution().counts;
      for (const [call, { counts: own }] of times.byName)
        if (!waits.test(call)) for (const [i, count] of own.entries()) (quick[i] as number) += count;
      return { ...sum, times: [...quick] };
    },
    /** Returns the figures of the `max` most frequent calls. The others are combined as `other`. */
    callFigures(max: number): CallFigures[] {
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
        help: 'Requests by call and status; 0 when the client disconnected before the answer.',
        kind: 'counter',
        labels: ['call', 'status'],
        read: () => counts.rows(),
      },
      {
        name: 'petrel_request_seconds',
        help: 'Time from the head of a request to the end of its answer. Includes the waiting of polls and streams.',
        kind: 'histogram',
        labels: ['call'],
        *read() {
          for (const [call, distribution] of times.byName) yield [[call], distribution];
        },
      },
    ] satisfies readonly Figure[],
  };
}
