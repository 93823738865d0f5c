/** Compares a run with kept results of earlier commits on the same machine. Does no I/O. */
import type { Results, ScenarioResult } from './results.js';
import { shareOf, taken_share_max, takenOf } from './verdict.js';

export interface TrendPoint {
  /** The day and the commit of the run. */
  readonly label: string;
  /** Whether other programs took CPU time during the run. */
  readonly disturbed: boolean;
  readonly share: number | null;
  /** The server's CPU time per request, in µs. */
  readonly server_us: number | null;
}

export interface Trend {
  readonly scenario: string;
  /** The points, oldest run first. The last one is the current run. */
  readonly points: readonly TrendPoint[];
}

/** How many runs a trend shows at most. */
export const trend_points_max = 20;

const settingsOf = ({ machine, settings }: Results) =>
  JSON.stringify([machine.cpu, machine.cores, machine.placement, settings.load, settings.connections]);

function pointOf(run: Results, { ratio, cpu_ratio, sides }: ScenarioResult): TrendPoint {
  const own = sides.find(({ role }) => role === 'subject');
  return {
    label: `${run.made_at.slice(5, 10)} ${run.commit === '' ? 'unknown' : run.commit.slice(0, 7)}`,
    disturbed: (takenOf(run) ?? 0) > taken_share_max,
    share: shareOf({ ratio, cpu_ratio }),
    server_us: own?.cpu.server ?? null,
  };
}

/**
 * Returns a trend for each scenario of `run` that an earlier run measured too. Only earlier runs with the same machine
 * and load count. `kept` contains the earlier runs in any order.
 */
export function trendsOf(run: Results, kept: readonly Results[]): Trend[] {
  const earlier = kept
    .filter((each) => each.made_at < run.made_at && settingsOf(each) === settingsOf(run))
    .sort((a, b) => a.made_at.localeCompare(b.made_at));
  return run.scenarios.flatMap((scenario) => {
    const points = [...earlier, run].flatMap((each) => {
      const found = each.scenarios.find(({ name }) => name === scenario.name);
      return found === undefined ? [] : [pointOf(each, found)];
    });
    return points.length < 2 ? [] : [{ scenario: scenario.name, points: points.slice(-trend_points_max) }];
  });
}
