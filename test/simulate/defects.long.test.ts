/** Tests that the simulator finds planted defects. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runSimulator } from './running.js';

const file = new URL('./mutations.json', import.meta.url);
const mutations = JSON.parse(readFileSync(file, 'utf8')) as Array<{ name: string; seed: number }>;

/**
 * The search begins with the seed that found the defect before. After the program has changed, this seed may find
 * nothing, and another seed is needed. If only few seeds find a mutation, the mutation names a focus, which then
 * applies to all seeds.
 */
test.each(mutations)(
  'simulated installations find the defect: $name',
  { timeout: 600_000 },
  async ({ name, seed }) => {
    const range = ['--from', `${seed}`, '--seeds', '500', '--steps', '2000'];
    const { status, output } = await runSimulator('--mutation', name, ...range, '--trace', '0');
    expect(output).toMatch(/^seed \d+ fails/m);
    expect(status).toBe(1);
  },
);
