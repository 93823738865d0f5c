/** Compares a benchmark run with each goal. Each row has the measured value, the goal, and whether the goal is met. */
import type { GoalResult, LatencyResult, Results, ScenarioResult } from '../src/loadtest/results.js';
import { whole } from '../src/loadtest/table.js';
import { shareOf } from '../src/loadtest/verdict.js';

/** A server counts as fully loaded if it uses more than this share of its core. */
const saturated = 0.9;
/**
 * The largest allowed p99, as a multiple of the comparison server's p99. Both are measured at half of the service's
 * highest rate.
 */
const p99_times_max = 3;
/** The resolution of the load generator's timer in ms. Shorter latencies cannot be compared. */
export const p99_ms_precision = 1;

/** The share of the offered rate that must be answered. With a smaller share, latencies are not compared. */
export const held_least = 0.97;

const of = (value: number | null) => (value === null ? 'unknown' : value.toFixed(3));
const times = (value: number | null) => (value === null ? 'not known' : `${value.toFixed(2)} ×`);
const percent = (value: number | null) => (value === null ? '?' : `${Math.round(value * 100)} %`);

const sideOf = ({ sides }: ScenarioResult, role: 'base' | 'subject') =>
  sides.find((side) => side.role === role);

function shareRows(result: ScenarioResult, least: number, redisMost: number | undefined): GoalResult[] {
  const { proof, title, ratio, cpu_ratio, ratios } = result;
  const [base, subject] = [sideOf(result, 'base'), sideOf(result, 'subject')];
  const share = shareOf(result);
  if (!base || !subject || share === null) return [];
  const busy = Math.min(subject.busy ?? 1, base.busy ?? 1);
  const hint = busy < saturated ? `; its core was only ${percent(busy)} busy: compare CPU time` : '';
  const rows: GoalResult[] = [
    {
      proof,
      what: `${title}: rate compared with the floor`,
      figure: `${of(share)} (${of(ratio)} by rate, ${of(cpu_ratio)} by CPU time; ${whole(subject.rate)} and ${whole(base.rate)}/s; ${ratios.length} rounds${hint})`,
      goal: `≥ ${least.toFixed(2)}`,
      met: share >= least,
    },
  ];
  const redis = subject.cpu.redis;
  if (redisMost !== undefined && typeof redis === 'number')
    rows.push({
      proof,
      what: `${title}: CPU time of Redis per call`,
      figure: `${redis.toFixed(1)} µs`,
      goal: `≤ ${redisMost} µs`,
      met: redis <= redisMost,
    });
  return rows;
}

function growthRow(result: ScenarioResult, most: number, whose: 'server' | 'both'): GoalResult[] {
  const { proof, title, growth, ratio, sides } = result;
  if (growth === null) return [];
  const own = growth[whose];
  const labels = sides.map(({ label }) => label).join(' → ');
  return [
    {
      proof,
      what: `${title}: CPU time per call, ${labels}`,
      figure: `${times(own)} ${whose === 'server' ? 'of the server' : 'of server and Redis'} (server ${times(growth.server)}, Redis ${times(growth.redis)}; rate ${of(ratio)})`,
      goal: `≤ ${most.toFixed(2)} ×`,
      met: own === null ? null : own <= most,
    },
  ];
}

function scenarioRows(result: ScenarioResult): GoalResult[] {
  const { goal } = result;
  if (goal?.share !== undefined) return shareRows(result, goal.share, goal.redis_us);
  if (goal?.growth !== undefined) return growthRow(result, goal.growth, goal.of ?? 'both');
  return [];
}

function latencyRow(latencies: readonly LatencyResult[], title: (name: string) => string): GoalResult[] {
  return latencies.flatMap((own) => {
    if (own.role !== 'subject') return [];
    const base = latencies.find(
      ({ scenario, role, offered }) =>
        scenario === own.scenario && role === 'base' && offered === own.offered,
    );
    if (!base) return [];
    const ratio = own.ms.p99 / Math.max(base.ms.p99, p99_ms_precision);
    const held = own.answered / own.offered;
    // If the comparison server could not keep up with the rate, the load generator or the machine was the limit, so the
    // ratio does not show how fast the service is.
    const comparable = base.answered / base.offered >= held_least;
    return [
      {
        proof: 'P6',
        what: `${title(own.scenario)}: p99 at half of the highest rate`,
        figure: `${times(ratio)} (${own.ms.p99.toFixed(2)} ms beside ${base.ms.p99.toFixed(2)} ms at ${whole(own.offered)}/s${held < held_least ? `, of which ${percent(held)} were held` : ''}; ${own.rounds} rounds)`,
        goal: `≤ ${p99_times_max} ×`,
        met: comparable ? ratio <= p99_times_max : null,
      },
    ];
  });
}

/** For goal P4: the longest allowed lag of writes to Postgres, in seconds, at half of the highest rate of sends. */
const lag_s_max = 2;

function lagRow(latencies: readonly LatencyResult[]): GoalResult[] {
  const own = latencies.find(({ scenario, role }) => scenario === 'sendMessage' && role === 'subject');
  if (!own) return [];
  return [
    {
      proof: 'P4',
      what: 'journal → Postgres: lag at half of the highest rate of sendMessage',
      figure: `${own.lag_s.toFixed(2)} s at most until Postgres had all changes, after ${own.rounds} loads of ${whole(own.offered)}/s`,
      goal: `≤ ${lag_s_max} s`,
      met: own.lag_s <= lag_s_max,
    },
  ];
}

const number = (proof: string) => Number(/^P(\d+)/.exec(proof)?.[1] ?? 99);

export function goalsOf({
  scenarios,
  latencies,
  findings,
}: Pick<Results, 'scenarios' | 'latencies' | 'findings'>): GoalResult[] {
  const title = (name: string) => scenarios.find((each) => each.name === name)?.title ?? name;
  const found = findings
    .filter(({ met }) => met !== null)
    .map(({ proof, what, measured, goal, met }) => ({ proof, what, figure: measured, goal, met }));
  return [
    ...scenarios.flatMap(scenarioRows),
    ...latencyRow(latencies, title),
    ...lagRow(latencies),
    ...found,
  ].sort((a, b) => number(a.proof) - number(b.proof));
}
