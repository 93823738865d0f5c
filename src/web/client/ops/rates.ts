/**
 * Computes rates and latencies. They come from the differences between the counters in two reports of the same process.
 */
import type { Call, Deliver, Node, Overview } from './types.js';

/**
 * Rates are averages over this time. It is long enough to prevent flickering values, and short enough to show changes
 * soon.
 */
const window_ms = 12_000;

export interface CallRate {
  call: string;
  /** Calls per second. `ok`, `refused`, `slowed` and `failed` are also per second. */
  all: number;
  ok: number;
  refused: number;
  slowed: number;
  failed: number;
  /** Percentiles of the duration in ms. Null if no call was timed. */
  p50: number | null;
  p99: number | null;
  /** The number of calls since the processes started. */
  total: number;
}

export interface Rates {
  calls: CallRate[];
  /** Calls of all kinds per second. `refused`, `slowed` and `failed` are also per second. */
  requests: number;
  refused: number;
  slowed: number;
  failed: number;
  /** Percentiles of the duration in ms. Calls that wait for updates are left out. */
  p50: number | null;
  p99: number | null;
  outcomes: Array<{ name: string; rate: number; total: number }>;
  dead: Array<{ name: string; total: number }>;
  delivered: number;
  undelivered: number;
  deliveryP99: number | null;
  ageP99: number | null;
  scriptP99: number | null;
  /** The rates per second of each process, keyed by the id of the process. */
  byNode: ReadonlyMap<string, { requests: number; deliveries: number; rows: number }>;
}

/** Matches long polls and streams. Their duration does not measure performance, because they wait for updates. */
const waits = (call: string) => /^(getUpdates|streamUpdates|\/api\/stream)/.test(call);

const less = (now: number, before: number | undefined, ms: number) =>
  Math.max(0, ((now - (before ?? 0)) * 1_000) / ms);

const lessEach = (now: readonly number[], before: readonly number[] | undefined) =>
  now.map((count, i) => Math.max(0, count - (before?.[i] ?? 0)));

function add(sum: number[], more: readonly number[]): void {
  for (const [i, count] of more.entries()) sum[i] = (sum[i] ?? 0) + count;
}

/**
 * Returns a percentile in ms. Interpolates linearly inside the histogram bucket that contains the percentile. Returns
 * null if all counts are 0.
 */
export function quantile(
  boundsSeconds: readonly number[],
  counts: readonly number[],
  q: number,
): number | null {
  const total = counts.reduce((a, b) => a + b, 0);
  if (total === 0) return null;
  let left = total * q;
  for (const [i, count] of counts.entries()) {
    if (left > count) {
      left -= count;
      continue;
    }
    const from = (boundsSeconds[i - 1] ?? 0) * 1_000;
    const to = (boundsSeconds[i] ?? boundsSeconds.at(-1) ?? 0) * 1_000;
    return from + ((to - from) * left) / Math.max(count, 1);
  }
  return (boundsSeconds.at(-1) ?? 0) * 1_000;
}

const totalOf = ({ ok, refused, slowed, failed, gone }: Call) => ok + refused + slowed + failed + gone;

interface Gathering {
  readonly rate: CallRate;
  readonly times: number[];
}

/** Keeps the recent reports of each process and computes the rates. */
export class Rating {
  readonly #reports = new Map<string, Node[]>();

  /** Adds a report and returns the rates, or null as long as no process has sent two reports. */
  add({ nodes, bounds_seconds: bounds }: Overview): Rates | null {
    for (const id of this.#reports.keys())
      if (!nodes.some((node) => node.id === id)) this.#reports.delete(id);
    for (const node of nodes) {
      const past = this.#reports.get(node.id) ?? [];
      if (past.at(-1)?.reported_ms === node.reported_ms) past[past.length - 1] = node;
      else past.push(node);
      // Keeps one report that is older than `window_ms`, because the rates need the counters at the beginning of this
      // window.
      while (past.length > 2 && (past[1] as Node).reported_ms <= node.reported_ms - window_ms) past.shift();
      this.#reports.set(node.id, past);
    }
    const pairs = [...this.#reports.values()].flatMap((past) =>
      past.length > 1 ? [[past[0] as Node, past.at(-1) as Node] as const] : [],
    );
    return pairs.length === 0 ? null : ratesOf(pairs, bounds);
  }
}

type Pairs = ReadonlyArray<readonly [before: Node, now: Node]>;

function callsOf(pairs: Pairs, bounds: readonly number[]) {
  const found = new Map<string, Gathering>();
  const quick: number[] = [];
  for (const [before, now] of pairs) {
    const ms = now.reported_ms - before.reported_ms;
    const former = new Map(before.front?.calls.map((one) => [one.call, one]));
    for (const one of now.front?.calls ?? []) {
      // If a call was counted as `other` until now, its first own total is large. This is not an increase, so the rate
      // of the call starts at 0.
      const wasOther = totalOf(one) > 50 && one.call !== 'other';
      const was = former.get(one.call) ?? (wasOther ? one : undefined);
      const known = found.get(one.call) ?? {
        rate: {
          call: one.call,
          all: 0,
          ok: 0,
          refused: 0,
          slowed: 0,
          failed: 0,
          p50: null,
          p99: null,
          total: 0,
        },
        times: [],
      };
      const { rate } = known;
      for (const field of ['ok', 'refused', 'slowed', 'failed'] as const)
        rate[field] += less(one[field], was?.[field], ms);
      rate.all += less(totalOf(one), was && totalOf(was), ms);
      rate.total += totalOf(one);
      const times = lessEach(one.times, was?.times);
      add(known.times, times);
      if (!waits(one.call)) add(quick, times);
      found.set(one.call, known);
    }
  }
  const calls = [...found.values()].map(({ rate, times }) => ({
    ...rate,
    p50: quantile(bounds, times, 0.5),
    p99: quantile(bounds, times, 0.99),
  }));
  return { calls, quick };
}

function deliveriesOf(pairs: Pairs) {
  const outcomes = new Map<string, { rate: number; total: number }>();
  const dead = new Map<string, number>();
  const times: number[] = [];
  const ages: number[] = [];
  for (const [before, now] of pairs) {
    if (!now.deliver) continue;
    const ms = now.reported_ms - before.reported_ms;
    for (const [name, total] of Object.entries(now.deliver.outcomes)) {
      const known = outcomes.get(name) ?? { rate: 0, total: 0 };
      known.rate += less(total, before.deliver?.outcomes[name], ms);
      known.total += total;
      outcomes.set(name, known);
    }
    for (const [name, total] of Object.entries(now.deliver.dead))
      dead.set(name, (dead.get(name) ?? 0) + total);
    add(times, lessEach(now.deliver.times, before.deliver?.times));
    add(ages, lessEach(now.deliver.ages, before.deliver?.ages));
  }
  return { outcomes, dead, times, ages };
}

const sent = ({ outcomes }: Deliver) => Object.values(outcomes).reduce((a, b) => a + b, 0);

function nodesOf(pairs: Pairs): Rates['byNode'] {
  const requests = (node: Node) => node.front?.calls.reduce((sum, one) => sum + totalOf(one), 0) ?? 0;
  return new Map(
    pairs.map(([before, now]) => {
      const ms = now.reported_ms - before.reported_ms;
      return [
        now.id,
        {
          requests: less(requests(now), requests(before), ms),
          deliveries: now.deliver ? less(sent(now.deliver), before.deliver && sent(before.deliver), ms) : 0,
          rows: now.flush ? less(now.flush.rows, before.flush?.rows, ms) : 0,
        },
      ];
    }),
  );
}

function ratesOf(pairs: Pairs, bounds: readonly number[]): Rates {
  const { calls, quick } = callsOf(pairs, bounds);
  const { outcomes, dead, times, ages } = deliveriesOf(pairs);
  const scripts: number[] = [];
  for (const [before, now] of pairs) add(scripts, lessEach(now.scripts ?? [], before.scripts));
  const sum = (of: (one: CallRate) => number) => calls.reduce((total, one) => total + of(one), 0);
  const delivered = outcomes.get('delivered')?.rate ?? 0;
  const byName = [...outcomes].sort(
    ([a], [b]) => Number(b === 'delivered') - Number(a === 'delivered') || a.localeCompare(b),
  );
  return {
    calls,
    requests: sum(({ all }) => all),
    refused: sum(({ refused }) => refused),
    slowed: sum(({ slowed }) => slowed),
    failed: sum(({ failed }) => failed),
    p50: quantile(bounds, quick, 0.5),
    p99: quantile(bounds, quick, 0.99),
    outcomes: byName.map(([name, { rate, total }]) => ({ name, rate, total })),
    dead: [...dead].map(([name, total]) => ({ name, total })),
    delivered,
    undelivered: [...outcomes.values()].reduce((total, { rate }) => total + rate, 0) - delivered,
    deliveryP99: quantile(bounds, times, 0.99),
    ageP99: quantile(bounds, ages, 0.99),
    scriptP99: quantile(bounds, scripts, 0.99),
    byNode: nodesOf(pairs),
  };
}
