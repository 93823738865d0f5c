/** Compares the results of two commits and finds exceeded budgets. Does no I/O. */

import type { Results } from '../src/loadtest/results.js';
import { held_least, p99_ms_precision } from './goals.js';

export interface Change {
  readonly what: string;
  readonly unit: string;
  readonly before: number;
  readonly after: number;
  readonly ratio: number;
  readonly limit: string | null;
  readonly broken: boolean;
}

type Better = 'less' | 'more' | 'shown';
interface Figure {
  readonly unit: string;
  readonly value: number;
  readonly better: Better;
  /** How much worse a measured value may become, as a share of its earlier value. */
  readonly slack: number;
}

const median = (values: readonly number[]) => {
  const sorted = [...values].sort((a, b) => a - b);
  return ((sorted[(sorted.length - 1) >> 1] ?? Number.NaN) + (sorted[sorted.length >> 1] ?? Number.NaN)) / 2;
};

/** A p99 varies more than a mean. The budget of a p99 is this many times the budget of a mean. */
const tail_slack_times = 3;

function figuresOf({ scenarios, latencies, findings }: Results, budget: number): Map<string, Figure> {
  const figures = new Map<string, Figure>();
  const add = (
    what: string,
    unit: string,
    value: number | null | undefined,
    better: Better,
    slack = budget,
  ) => {
    if (typeof value === 'number') figures.set(what, { unit, value, better, slack });
  };
  for (const { name, sides, ratio, cpu_ratio, growth } of scenarios) {
    const own = sides.find(({ role }) => role === 'subject');
    if (!own) continue;
    add(`${name}: CPU time of the server per call`, 'µs', own.cpu.server, 'less');
    add(`${name}: CPU time of Redis per call`, 'µs', own.cpu.redis, 'less');
    // Other programs on the machine slow the service and the comparison server alike. The ratio of their CPU times
    // therefore varies less than the CPU times do.
    add(`${name}: CPU time of Redis relative to the floor`, '×', growth?.redis, 'shown');
    add(`${name}: share of the floor by CPU time`, '', cpu_ratio, 'more');
    add(`${name}: share of the floor by rate`, '', ratio, 'shown');
    add(`${name}: rate`, '/s', own.rate, 'shown');
    add(`${name}: scripts a call`, '', own.scripts, 'shown');
  }
  for (const { scenario, role, offered, ms } of latencies) {
    if (role !== 'subject') continue;
    const base = latencies.find(
      (each) => each.scenario === scenario && each.role === 'base' && each.offered === offered,
    );
    if (!base) continue;
    // If the comparison server could not keep up with the rate, the machine was too slow, and the p99 is ignored.
    const comparable = !(base.answered < held_least * base.offered);
    add(
      `${scenario}: p99 at half of the rate, relative to the floor`,
      '×',
      ms.p99 / Math.max(base.ms.p99, p99_ms_precision),
      comparable ? 'less' : 'shown',
      budget * tail_slack_times,
    );
    add(`${scenario}: p99 at half of the rate`, 'ms', ms.p99, 'shown');
  }
  for (const { key, value } of findings) {
    if (/^trips /.test(key)) add(key, '', value, 'less', 0);
    else if (/^bytes /.test(key)) add(key, 'B', value, 'less');
    else add(key, '', value, 'shown');
  }
  return figures;
}

/**
 * Compares the medians of the runs before the change with the medians after it. `budget` is how much worse a value may
 * become, as a share of the value. Leaves out values that were measured only before or only after.
 */
export function changesOf(before: readonly Results[], after: readonly Results[], budget: number): Change[] {
  const [old, now] = [before, after].map((runs) => runs.map((run) => figuresOf(run, budget))) as [
    Map<string, Figure>[],
    Map<string, Figure>[],
  ];
  const [first] = now;
  if (!first) return [];
  const names = [...first.keys()].filter((what) => old[0]?.has(what));
  return names.map((what) => {
    const of = (runs: readonly Map<string, Figure>[]) =>
      median(runs.flatMap((run) => (run.has(what) ? [(run.get(what) as Figure).value] : [])));
    const { unit, better, slack } = first.get(what) as Figure;
    const [was, is] = [of(old), of(now)];
    const ratio = was === is ? 1 : is / was;
    const broken = better === 'less' ? ratio > 1 + slack : better === 'more' ? ratio < 1 - slack : false;
    const limit = {
      less: `≤ ${(1 + slack).toFixed(2)} ×`,
      more: `≥ ${(1 - slack).toFixed(2)} ×`,
      shown: null,
    }[better];
    return { what, unit, before: was, after: is, ratio, limit, broken };
  });
}
