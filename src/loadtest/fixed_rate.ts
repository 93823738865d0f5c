/**
 * Puts load on a server at a fixed rate. The time when a request is due does not depend on earlier answers. The latency
 * is measured from that time, even if the request was sent later. If a server stops responding for a second, this delay
 * is therefore part of the latencies of all requests that were due in that second (no coordinated omission).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Dispatcher, Pool } from 'undici';
import { makeHistogram, note, percentilesOf } from './latency_percentiles.js';
import type { LatencyPercentiles } from './results.js';
import { fillIn, type Series, type Template, templatesOf } from './series.js';

export interface FixedRate {
  /** Requests per second. */
  readonly rate: number;
  readonly seconds: number;
  /** The length of the warm-up in seconds. The warm-up has the same rate, but its latencies are not recorded. */
  readonly warmup_s?: number;
  readonly connections: number;
  readonly salt: string;
  readonly signal?: AbortSignal;
  /**
   * The largest share of calls that may fail. If more fail, the load ends early, but not within its first hundred
   * calls.
   */
  readonly failedShareMax?: number;
}

export interface FixedRateResult {
  readonly sent: number;
  readonly answered: number;
  /** How many calls failed, by HTTP status or by the connection's error code. */
  readonly failed: Readonly<Record<string, number>>;
  /** Answers per second, from the first request to the last answer. */
  readonly rate: number;
  /**
   * The longest time in ms between when a request was due and when it was sent. A long time shows that the load
   * generator had to share its core.
   */
  readonly late_ms: number;
  readonly latency: LatencyPercentiles;
}

const timeout_ms = 30_000;
/** A load that falls behind its rate is ended after this many times its planned duration. */
const length_times_max = 3;

export interface Sent {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
}

export type Wire = ReturnType<typeof poolWire>;

/** Opens connections with undici, which supports TLS and proxies. `ca` is the certificate of a private authority. */
export function poolWire(origin: string, connections: number, ca?: string) {
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    headersTimeout: timeout_ms,
    bodyTimeout: timeout_ms,
    ...(ca === undefined ? {} : { connect: { ca } }),
  });
  let open = 0;
  return {
    free: () => connections - open,
    /**
     * Sends a request on an idle connection. Then calls `over` with the HTTP status, or with 0 and the reason of the
     * failure.
     */
    send(request: Sent, over: (status: number, why: string) => void) {
      open++;
      let status = 0;
      const handler: Dispatcher.DispatchHandler = {
        onRequestStart() {},
        onResponseStart(_, code) {
          status = code;
        },
        onResponseData() {},
        onResponseEnd() {
          open--;
          over(status, '');
        },
        onResponseError(_, error) {
          open--;
          over(0, (error as Error & { code?: string }).code ?? error.message);
        },
      };
      pool.dispatch(request, handler);
    },
    close: (): Promise<void> => pool.destroy(),
  };
}

const asJson = { 'content-type': 'application/json' };

export function requestsOf(
  templates: readonly Template[],
  rows: Series['rows'],
  byRow: boolean | undefined,
): () => Sent {
  let at = -1;
  let pass = 0;
  return () => {
    if (++at === rows.length) {
      at = 0;
      pass++;
    }
    const row = rows[at] as readonly string[];
    const { verb, path, token, body } = templates[
      byRow ? Number(row[0]) : pass % templates.length
    ] as Template;
    return {
      method: verb,
      path: fillIn(path, row, pass),
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${fillIn(token, row, pass)}` }),
        ...(body === undefined ? {} : asJson),
      },
      body: body === undefined ? null : fillIn(body, row, pass),
    };
  };
}

/**
 * Puts load on a server at a fixed rate, through `wire`, or through undici if `wire` is absent. The result shows
 * whether the server kept up with the rate.
 */
export async function loadAtRate(
  series: Series,
  options: FixedRate,
  wire: Wire = poolWire(series.origin, options.connections),
): Promise<FixedRateResult> {
  const { rate, seconds, warmup_s = 0, salt, signal, failedShareMax = 1 } = options;
  const unnoted = Math.round(rate * warmup_s);
  const count = unnoted + Math.round(rate * seconds);
  const next = requestsOf(templatesOf(series, salt), series.rows, series.byRow);
  const histogram = makeHistogram();
  const failed: Record<string, number> = {};
  let [due, sent, over, answered, failures, late, lastAt] = [0, 0, 0, 0, 0, 0, 0];
  const began = performance.now() + 5;
  const dueAt = (number: number) => began + (number * 1_000) / rate;
  const pump = () => {
    while (sent < due && wire.free() > 0) {
      const number = sent++;
      wire.send(next(), (status, why) => {
        over++;
        lastAt = performance.now();
        if (number >= unnoted) note(histogram, lastAt - dueAt(number));
        if (status === 200) answered++;
        else {
          failures++;
          failed[why || status] = (failed[why || status] ?? 0) + 1;
        }
        if (sent < due) pump();
      });
    }
  };
  const tooMany = () => failures >= 100 && failures > failedShareMax * over;
  const end = began + length_times_max * (seconds + warmup_s) * 1_000 + timeout_ms;
  try {
    while (due < count && !tooMany()) {
      signal?.throwIfAborted();
      const now = performance.now();
      if (now > end) break;
      // Records how late this process sends the request. The process may be late because it is busy or shares a core.
      if (due >= unnoted) late = Math.max(late, now - dueAt(due));
      due = Math.min(count, Math.max(due, Math.floor(((now - began) * rate) / 1_000) + 1));
      pump();
      await sleep(1);
    }
    if (tooMany() || performance.now() > end) due = sent;
    while (over < due && performance.now() < end) await sleep(1);
    const took = Math.max(lastAt - began, (Math.max(sent - 1, 1) * 1_000) / rate);
    return {
      sent,
      answered,
      failed,
      late_ms: late,
      latency: percentilesOf(histogram),
      rate: (answered * 1_000) / took,
    };
  } finally {
    await wire.close();
  }
}
