/** Tests many simulated installations. */
import { expect, test } from 'vitest';
import { runSimulator } from './running.js';

/** The seeds are divided between two processes, one for each of two cores. */
const processes = 2;
const seedsEach = 1_000;

const counts = (output: string) => {
  const found = output.matchAll(/^\w+: (\d+) histories with \d+ calls checked, (\d+) undecided$/gm);
  return [...found].map(([, histories, undecided]) => [Number(histories), Number(undecided)] as const);
};

test('in 2,000 simulated installations, nothing is lost, repeated or reordered', {
  timeout: 1_800_000,
}, async () => {
  const runs = await Promise.all(
    Array.from({ length: processes }, (_, i) =>
      runSimulator('--from', `${1 + i * seedsEach}`, '--seeds', `${seedsEach}`, '--steps', '800'),
    ),
  );
  for (const { status, output } of runs) {
    console.log(output);
    expect(status, output).toBe(0);
    expect(output).toMatch(new RegExp(`^${seedsEach} seeds`, 'm'));
    expect(counts(output)).toHaveLength(2);
    for (const [histories, undecided] of counts(output)) {
      expect(histories).toBeGreaterThan(1_000);
      expect(undecided / histories, output).toBeLessThan(0.01);
    }
  }
});
