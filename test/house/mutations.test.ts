/**
 * Tests that each planted defect of the simulator can still be applied to the code. In the long tier, the simulator
 * runs with each defect and must detect it.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const text = readFileSync(`${root}test/simulate/mutations.json`, 'utf8');
const mutations = JSON.parse(text) as ReadonlyArray<{ readonly name: string; readonly changes: Change[] }>;

test('each planted defect replaces a text that occurs exactly once in its file', () => {
  expect(mutations.length).toBeGreaterThan(20);
  const unfit = mutations.flatMap(({ name, changes }) =>
    changes
      .filter(({ file, from, to }) => {
        const parts = readFileSync(root + file, 'utf8').split(from);
        return parts.length !== 2 || parts.join(to) === parts.join(from);
      })
      .map(({ file }) => `${name}: ${file}`),
  );
  expect(unfit).toEqual([]);
});
