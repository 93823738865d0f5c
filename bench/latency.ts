/**
 * For goal P6: measures latency at a fixed rate on the service and on the comparison server, and how latency grows with
 * the rate.
 */
import { expect } from '../src/loadtest/client.js';
import { percentiles } from '../src/loadtest/latency_percentiles.js';
import type { LatencyPercentiles, LatencyResult, ScenarioResult } from '../src/loadtest/results.js';
import { loadFixed } from './load/load.js';
import {
  costsBetween,
  drain,
  known,
  type MeasureOptions,
  median,
  type NamedSide,
  readCosts,
  verified,
} from './measure.js';
import type { Scenario } from './scenarios/scenario.js';

/** The service and the comparison server are measured at this share of the service's highest rate. */
export const half = 0.5;
/** For the plot of latency against load, latency is measured at these shares of the highest rate. */
export const sweep: readonly number[] = [0.1, 0.25, 0.5, 0.7, 0.85];
/** The longest warm-up of connections and code before a measurement, in seconds. */
const warmup_s_max = 1;
const costs = ['server', 'redis', 'flush', 'postgres', 'load'] as const;

type Turn = Awaited<ReturnType<typeof loadFixed>> & {
  readonly cpu: ReturnType<typeof costsBetween>;
  readonly lag_s: number;
};

async function turn(
  { side }: NamedSide,
  { versions }: Scenario,
  rate: number,
  options: MeasureOptions,
): Promise<Turn> {
  const { watch } = options;
  const counted = versions > 0 && !side.foreign;
  return verified(side, options, async () => {
    const versionsBefore = counted ? await watch.versions() : 0;
    const before = await readCosts(options.service, watch, [side.target.pid]);
    const result = await loadFixed(side.series, {
      ...options,
      rate,
      // Lets the load generator use any core. At half of the highest rate, no process needs a core for itself. If the
      // load generator shared a core with Redis, Postgres and the flusher, its timers would use a third of the core's
      // time and distort the latencies.
      anyCore: true,
      warmup_s: Math.min(options.warmup_s, warmup_s_max),
    });
    const lag_s = await drain(options);
    const after = await readCosts(options.service, watch, [side.target.pid]);
    const applied = counted ? ((await watch.versions()) - versionsBefore) / versions : result.answered;
    expect(applied === result.answered, `${result.answered} calls were acknowledged and ${applied} applied`);
    return { ...result, cpu: costsBetween(before, after, result.answered), lag_s };
  });
}

function resultOf(
  scenario: string,
  { label, role }: NamedSide,
  share: number,
  offered: number,
  turns: readonly Turn[],
): LatencyResult {
  const ms = percentiles.map(([name]) => [name, median(turns.map(({ latency }) => latency[name]))]);
  return {
    ...{ scenario, label, role, share, offered },
    answered: median(turns.map(({ rate }) => rate)),
    failed: 0,
    cpu: Object.fromEntries(costs.map((name) => [name, known(median(turns.map(({ cpu }) => cpu[name])))])),
    lag_s: Math.max(...turns.map(({ lag_s }) => lag_s)),
    late_ms: Math.max(...turns.map(({ late_ms }) => late_ms)),
    rounds: turns.length,
    ms: Object.fromEntries(ms) as unknown as LatencyPercentiles,
  };
}

export async function measureLatency(
  scenario: Scenario,
  sides: readonly NamedSide[],
  { sides: measured }: ScenarioResult,
  options: MeasureOptions & { readonly sweep: boolean },
): Promise<LatencyResult[]> {
  const highest = measured.find(({ role }) => role === 'subject')?.rate ?? 0;
  const rateAt = (share: number) => Math.max(1, Math.round(highest * share));
  const compared = sides.filter(({ role }) => role !== 'peer');
  const turns = new Map<NamedSide, Turn[]>(compared.map((each) => [each, []]));
  for (let i = 1; i <= options.rounds; i++) {
    for (const each of i % 2 === 1 ? compared : [...compared].reverse()) {
      options.progress(
        `${scenario.name}: at half of its highest rate, round ${i} of ${options.rounds}, ${each.label}`,
      );
      turns.get(each)?.push(await turn(each, scenario, rateAt(half), options));
    }
  }
  const found = compared.map((each) =>
    resultOf(scenario.name, each, half, rateAt(half), turns.get(each) as Turn[]),
  );
  const subject = compared.find(({ role }) => role === 'subject') as NamedSide;
  for (const share of options.sweep ? sweep.filter((each) => each !== half) : []) {
    options.progress(`${scenario.name}: at ${Math.round(share * 100)} % of its highest rate`);
    const rate = rateAt(share);
    found.push(resultOf(scenario.name, subject, share, rate, [await turn(subject, scenario, rate, options)]));
  }
  return found;
}
