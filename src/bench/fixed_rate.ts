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

/** Requests that may be under way or due; more means that the rate cannot be held. */
const open_max = 20_000;
const timeout_ms = 30_000;

interface Sent {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
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

/** Loads a server at a fixed rate. Throws when so many requests are open that the rate cannot be held. */
export async function loadAtRate(series: Series, options: FixedRate): Promise<FixedRateResult> {
  const { rate, seconds, warmup_s = 0, connections, salt, signal, failedShareMax = 1 } = options;
  const unnoted = Math.round(rate * warmup_s);
  const pool = new Pool(series.origin, {
    connections,
    pipelining: 1,
    headersTimeout: timeout_ms,
    bodyTimeout: timeout_ms,
  });
  const next = requestsOf(templatesOf(series, salt), series.rows, series.byRow);
  const histogram = makeHistogram();
  const failed: Record<string, number> = {};
  let [sent, answered, failures, open, late, lastAt] = [0, 0, 0, 0, 0, 0];
  const fail = (why: string) => {
    failed[why] = (failed[why] ?? 0) + 1;
    failures++;
  };
  const send = (due: number) => {
    open++;
    const noted = sent++ >= unnoted;
    let status = 0;
    const over = () => {
      open--;
      lastAt = performance.now();
      if (noted) note(histogram, lastAt - due);
    };
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart() {},
      onResponseStart(_, code) {
        status = code;
      },
      onResponseData() {},
      onResponseEnd() {
        over();
        if (status === 200) answered++;
        else fail(String(status));
      },
      onResponseError(_, error) {
        over();
        fail((error as Error & { code?: string }).code ?? error.message);
      },
    };
    pool.dispatch(next(), handler);
  };
  const tooMany = () => failures >= 100 && failures > failedShareMax * sent;
  try {
    const count = unnoted + Math.round(rate * seconds);
    const began = performance.now() + 5;
    while (sent < count && !tooMany()) {
      signal?.throwIfAborted();
      for (let now = performance.now(); sent < count; ) {
        const due = began + (sent * 1_000) / rate;
        if (due > now) break;
        if (open >= open_max) throw new Error(`${rate} requests a second are more than can be held here`);
        if (sent >= unnoted) late = Math.max(late, now - due);
        send(due);
        if (sent % 64 === 0) now = performance.now();
      }
      await sleep(1);
    }
    while (open > 0) await sleep(1);
    const took = Math.max(lastAt - began, count > 0 ? ((sent - 1) * 1_000) / rate : 1);
    return {
      sent,
      answered,
      failed,
      rate: (answered * 1_000) / took,
      late_ms: late,
      spread: spreadOf(histogram),
    };
  } finally {
    await pool.destroy();
  }
}
