/**
 * Defines how much work a fault test does, and records its results. `npm run test:all` runs the short form. `npm run
 * faults` runs the long form: it multiplies the amounts in the goals by PETREL_FAULTS_SCALE, and shows each figure
 * beside its goal.
 */
import { appendFileSync } from 'node:fs';
import type { Verdict } from '../support/ledger.js';

const given = Number(process.env.PETREL_FAULTS_SCALE);
export const long = given > 0;

/**
 * Returns how much work a test does: `short` in the short form, and `whole` times PETREL_FAULTS_SCALE in the long form.
 */
export const amount = (short: number, whole: number): number =>
  long ? Math.max(1, Math.round(whole * given)) : short;

/** The time limit of a fault test in ms. The waits inside a test have separate limits. */
export const patienceMs = long ? 6 * 3_600_000 : 300_000;

export interface Goal {
  readonly what: string;
  readonly figure: number;
  readonly most?: number;
  readonly least?: number;
}

export const atMost = (what: string, figure: number, most: number): Goal => ({ what, figure, most });
export const atLeast = (what: string, figure: number, least: number): Goal => ({ what, figure, least });

/** Adds up the counts of all faults that must never happen. The goal of the sum is 0. */
export const nothingLost = ({ lost, doubled, reordered, invented, reused }: Verdict): Goal =>
  atMost(
    'lost, doubled, reordered, invented or under a used id',
    lost + doubled + reordered + invented + reused,
    0,
  );

export const isMet = ({ figure, most = Number.POSITIVE_INFINITY, least = Number.NEGATIVE_INFINITY }: Goal) =>
  figure <= most && figure >= least;

/**
 * Appends a line to the report of the long form. The line contains the name of the fault in the table of goals (`row`),
 * a description of the run (`what`), and the figures.
 */
export function report(
  row: string,
  what: string,
  figures: Readonly<Record<string, unknown>>,
  goals: readonly Goal[] = [],
): void {
  const file = process.env.PETREL_FAULTS_REPORT;
  if (!file) return;
  const line = { row, what, figures, goals: goals.map((goal) => ({ ...goal, met: isMet(goal) })) };
  appendFileSync(file, `${JSON.stringify(line)}\n`);
}
