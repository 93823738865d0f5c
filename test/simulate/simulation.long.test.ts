/** Tests many simulated installations, and that the simulator finds planted defects. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const launcher = fileURLToPath(new URL('../../infra/build/launch.mjs', import.meta.url));
const file = new URL('./mutations.json', import.meta.url);
const mutations = JSON.parse(readFileSync(file, 'utf8')) as Array<{ readonly name: string }>;

function run(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [launcher, 'simulate', ...args], {
    encoding: 'utf8',
  });
  return { status, output: `${stdout}${stderr}` };
}

test('2,000 simulated installations lose, repeat and reorder nothing', { timeout: 1_200_000 }, () => {
  const { status, output } = run('--from', '1', '--seeds', '2000', '--steps', '800', '--minutes', '19');
  expect(status, output).toBe(0);
  // Fails if the time limit ended the run before the last seed.
  expect(output).toMatch(/^2000 seeds/m);
  const found = output.matchAll(/^\w+: (\d+) histories with \d+ calls checked, (\d+) undecided$/gm);
  const checked = [...found].map(([, histories, undecided]) => [Number(histories), Number(undecided)]);
  expect(checked).toHaveLength(2);
  for (const [histories = 0, undecided = 0] of checked) {
    expect(histories).toBeGreaterThan(2_000);
    expect(undecided / histories, output).toBeLessThan(0.01);
  }
});

test.each(mutations)(
  '500 simulated installations find the defect: $name',
  { timeout: 600_000 },
  ({ name }) => {
    const { status, output } = run('--mutation', name, '--seeds', '500', '--steps', '2000', '--trace', '0');
    expect(output).toMatch(/^seed \d+ fails/m);
    expect(status).toBe(1);
  },
);
