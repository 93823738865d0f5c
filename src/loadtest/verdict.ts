/**
 * Judges the results of a run: their ratio to the minimal server (the floor), how much the rounds differ, and whether
 * the results are reliable.
 */
import type { Results, ScenarioResult } from './results.js';

/**
 * If other programs use more than this share of the machine's CPU time, the results are not reliable. Interrupts that
 * the run itself causes are counted as other programs.
 */
export const taken_share_max = 0.15;

/**
 * If the highest ratio of a scenario is more than this many times the lowest ratio, the scenario's rounds differ too
 * much to be reliable.
 */
export const spread_max = 1.3;

/**
 * Returns the ratio to the minimal server (the floor) by which a scenario is judged: the ratio of rates or the ratio of
 * CPU times, whichever is lower. The rates alone do not decide, because something other than the server may have
 * limited a rate.
 */
export function shareOf({ ratio, cpu_ratio }: Pick<ScenarioResult, 'ratio' | 'cpu_ratio'>): number | null {
  if (ratio === null) return null;
  return cpu_ratio === null ? ratio : Math.min(ratio, cpu_ratio);
}

export interface Spread {
  readonly least: number;
  readonly most: number;
}

/** Returns the lowest and the highest value, or null if there are fewer than two values. */
export const spreadOf = (values: readonly number[]): Spread | null =>
  values.length < 2 ? null : { least: Math.min(...values), most: Math.max(...values) };

/** Returns the highest share of the machine's CPU time that other programs took in a round, or null if unknown. */
export function takenOf({ scenarios }: Pick<Results, 'scenarios'>): number | null {
  const taken = scenarios.flatMap(({ sides }) => sides.flatMap((side) => side.taken ?? []));
  return taken.length === 0 ? null : Math.max(...taken);
}

const percent = (share: number) => `${Math.round(share * 100)} %`;

/** Returns a sentence for each reason why the results are unreliable. */
export function warningsOf({ scenarios }: Pick<Results, 'scenarios'>): string[] {
  const disturbed = scenarios.flatMap((scenario) => {
    const taken = takenOf({ scenarios: [scenario] });
    return taken !== null && taken > taken_share_max ? [{ name: scenario.name, taken }] : [];
  });
  const wide = scenarios.flatMap(({ name, ratios }) => {
    const spread = spreadOf(ratios);
    return spread !== null && spread.most > spread_max * spread.least ? [{ name, ...spread }] : [];
  });
  return [
    ...(disturbed.length === 0
      ? []
      : [
          `Other programs, or other machines on the same host, took CPU time during rounds: ${disturbed.map(({ name, taken }) => `up to ${percent(taken)} of this machine in ${name}`).join(', ')}. Repeat these measurements on an idle machine.`,
        ]),
    ...(wide.length === 0
      ? []
      : [
          `The rounds differ widely: ${wide.map(({ name, least, most }) => `${name} had ${least.toFixed(2)} to ${most.toFixed(2)} of the floor`).join(', ')}.`,
        ]),
  ];
}

export interface Verdict {
  /** Null if the run decided no goal. */
  readonly good: boolean | null;
  readonly words: string;
}

/** Returns the result of a run in one or two sentences. */
export function verdictOf({ goals, ended }: Pick<Results, 'goals' | 'ended'>): Verdict {
  const missed = goals.filter(({ met }) => met === false);
  const met = goals.filter((row) => row.met === true).length;
  const open = goals.length - met - missed.length;
  const undecided = open === 0 ? '' : ` ${open} could not be decided.`;
  if (missed.length > 0)
    return {
      good: false,
      words: `${missed.length} of ${goals.length} measured goals ${missed.length === 1 ? 'is' : 'are'} not met.${undecided}`,
    };
  if (met === 0) return { good: null, words: `This run decides no goal.${undecided}` };
  const words = met === 1 ? 'The measured goal is met.' : `All ${met} decided goals are met.`;
  return { good: ended === '' ? true : null, words: `${words}${undecided}` };
}
