/**
 * Load at a fixed rate. Every request is due at an instant that does not depend on the answers before it, and its latency
 * counts from that instant, whether it could be sent then or not: who stops for a second is charged for all that were due
 * in it (no coordinated omission).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Dispatcher, Pool } from 'undici';
import { fillIn, type Series, type Template, templatesOf } from './series.js';
import { makeHistogram, note, type Spread, spreadOf } from './spread.js';

export interface FixedRate {
  /** Requests a second. */
  readonly rate: number;
  readonly seconds: number;
  /** The load begins so much earlier, at the same rate: connections and code warm up, and no latency is noted. */
  readonly warmup_s?: number;
  readonly connections: number;
  /** A text that no other load of the run has. */
  readonly salt: string;
  readonly signal?: AbortSignal;
  /** Ends the load early when the share of calls that failed, of at least a hundred, is over this. */
  readonly failedShareMax?: number;
}

export interface FixedRateResult {
  /** Requests that were sent. */
  readonly sent: number;
  /** Answered with 200. */
  readonly answered: number;
  /** Others by status, or by the code of a connection's error. */
  readonly failed: Readonly<Record<string, number>>;
  /** Answers a second from the first request to the last answer. */
  readonly rate: number;
  /** How late the load itself was at most in sending what was due, in ms: what it shares a machine with shows here. */
  readonly late_ms: number;
  readonly spread: Spread;
}

const timeout_ms = 30_000;
/** A load that cannot keep its rate is given up after so many times its length. */
const length_times_max = 3;

export interface Sent {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
}

/** Connections with one request at a time each. */
export interface Wire {
  /** Connections that have none. */
  free(): number;
  /** Sends a request over a free connection; `over` gets the status, or 0 and why there is none. */
  send(request: Sent, over: (status: number, why: string) => void): void;
  close(): Promise<void>;
}

/** By undici: over TLS, and through whatever lies between. `ca` certifies a server that nobody else does. */
export function poolWire(origin: string, connections: number, ca?: string): Wire {
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
    send(request, over) {
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
    close: () => pool.destroy(),
  };
}

const asJson = { 'content-type': 'application/json' };

/** The requests of a series one after another, again and again. */
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

/** Loads a server at a fixed rate, over `wire` or undici. A rate that it cannot keep shows in the result. */
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
  /** Sends what is due, as far as connections are free. */
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
      // How late this process is, for itself or for those it shares a core with.
      if (due >= unnoted) late = Math.max(late, now - dueAt(due));
      due = Math.min(count, Math.max(due, Math.floor(((now - began) * rate) / 1_000) + 1));
      pump();
      await sleep(1);
    }
    if (tooMany() || performance.now() > end) due = sent;
    while (over < due && performance.now() < end) await sleep(1);
    const took = Math.max(lastAt - began, (Math.max(sent - 1, 1) * 1_000) / rate);
    return {
      ...{ sent, answered, failed, late_ms: late, spread: spreadOf(histogram) },
      rate: (answered * 1_000) / took,
    };
  } finally {
    await wire.close();
  }
}
