/**
 * Loads the data of the operators' page every few seconds while the page is visible. Only one request is in flight at a
 * time.
 */
import { useEffect, useRef, useState } from 'react';
import { CallFailure, call, reasonOf, token } from './api.js';
import { type Rates, Rating } from './rates.js';
import { joined } from './series.js';
import type { History, Overview } from './types.js';

const points_max = 90;

export interface Point {
  requests: number;
  failed: number;
  p99: number;
  delivered: number;
  undelivered: number;
  journal: number;
  overdue: number;
  dead: number;
  open: number;
}

export interface View {
  overview: Overview | null;
  rates: Rates | null;
  history: readonly Point[];
  /** The last error, or '' if there is none. */
  failure: string;
}

export const openOf = (overview: Overview): number =>
  overview.nodes.reduce((sum, { front }) => sum + (front?.open ?? 0), 0);

function pointOf(overview: Overview, rates: Rates): Point {
  return {
    requests: rates.requests,
    failed: rates.failed,
    p99: rates.p99 ?? 0,
    delivered: rates.delivered,
    undelivered: rates.undelivered,
    journal: overview.journal?.waiting ?? 0,
    overdue: overview.queues?.webhooks_overdue ?? 0,
    dead: overview.postgres?.dead_letters ?? 0,
    open: openOf(overview),
  };
}

const rest = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

/**
 * Calls `ask` immediately and then every `ms`, except while `paused` is true or the page is hidden. Starts again when
 * the parameter `of` changes. `ask` must not reject.
 */
export function useRepeated(ask: () => Promise<void>, ms: number, paused: boolean, of = ''): void {
  const latest = useRef(ask);
  latest.current = ask;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect must restart when `of` changes
  useEffect(() => {
    if (paused) return;
    const end = new AbortController();
    void (async () => {
      while (!end.signal.aborted) {
        if (!document.hidden) await latest.current();
        await rest(ms, end.signal);
      }
    })();
    return () => end.abort();
  }, [ms, paused, of]);
}

export type HistoryRange = History['ranges'][number];
export const rangeNames: Readonly<Record<HistoryRange, string>> = {
  '1h': '1 hour',
  '6h': '6 hours',
  '24h': '24 hours',
  '7d': '7 days',
};

export interface Loaded {
  history: History | null;
  /** The last error if nothing is loaded yet, otherwise ''. */
  failure: string;
}

/**
 * Loads the history of a range repeatedly. For a range of an hour, later loads request only the new points. For a
 * longer range, each load requests all points.
 */
export function useHistory(range: HistoryRange, paused: boolean): Loaded {
  const [loaded, setLoaded] = useState({ range, history: null as History | null, failure: '' });
  const latest = useRef(loaded);
  const chosen = useRef(range);
  chosen.current = range;
  const load = async () => {
    const before = latest.current.range === range ? latest.current.history : null;
    const last = range === '1h' ? before?.points.at(-1) : undefined;
    let next = { range, history: before, failure: '' };
    try {
      const more = await call<History>(`history?range=${range}${last ? `&after_ms=${last.at_ms}` : ''}`);
      next = { ...next, history: last ? joined(before, more) : more };
    } catch (error) {
      next = { ...next, failure: before ? '' : reasonOf(error) };
    }
    // Ignores the answer if another range has been chosen after this request.
    if (chosen.current !== range) return;
    latest.current = next;
    setLoaded(next);
  };
  useRepeated(load, range === '1h' ? 5_000 : 30_000, paused, range);
  return loaded.range === range ? loaded : { history: null, failure: '' };
}

export function useView(paused: boolean): View {
  const [view, setView] = useState<View>({ overview: null, rates: null, history: [], failure: '' });
  const rating = useRef(new Rating());
  useRepeated(
    async () => {
      try {
        const overview = await call<Overview>('overview');
        const rates = rating.current.add(overview);
        setView(({ history }) => ({
          overview,
          rates,
          history: rates ? [...history, pointOf(overview, rates)].slice(-points_max) : history,
          failure: '',
        }));
      } catch (error) {
        if (token.value === '') return;
        const text = error instanceof CallFailure ? reasonOf(error) : 'No front answers';
        setView((before) => ({ ...before, failure: text }));
      }
    },
    2_000,
    paused,
  );
  return view;
}
