/**
 * Runs the long fault tests and prints each result with its goal, met or not.
 *
 *   npm run faults                           all faults at full size; takes some hours
 *   npm run faults -- --only R3,R12          only these faults
 *   npm run faults -- --scale 0.05           all faults at a twentieth of the size
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const usage = `npm run faults -- [options]

  --only <rows>    for instance R3,R12; all without it
  --scale <n>      factor for the amounts of the goals; 1 without it
  --help           shows this

Each row (R1, R2, …) of the fault table is a fault under load: processes that are killed or frozen, an unavailable Redis or
Postgres, receivers that misbehave. The test records every answer and every update and compares the records with the data
that the service kept. The exit code is 1 when a goal is not met.
`;

const number = (value) =>
  typeof value === 'number'
    ? value.toLocaleString('en', { maximumFractionDigits: 2 })
    : Array.isArray(value)
      ? value.map(number).join(' ')
      : typeof value === 'object' && value !== null
        ? Object.entries(value)
            .map(([name, each]) => `${name} ${number(each)}`)
            .join(', ') || 'none'
        : String(value);

const bound = ({ most, least }) => (most !== undefined ? `≤ ${number(most)}` : `≥ ${number(least)}`);

/** Prints the results that the tests recorded. Returns how many goals were missed. */
function print(lines, say) {
  let missed = 0;
  const rank = ({ row }) => Number(/\d+/.exec(row)?.[0] ?? 99);
  for (const { row, what, figures, goals } of lines.sort((a, b) => rank(a) - rank(b))) {
    say(`\n${row.padEnd(9)} ${what}`);
    for (const goal of goals) {
      if (!goal.met) missed++;
      const figure = `${number(goal.figure)}  (${bound(goal)})`;
      say(`            ${goal.met ? 'met     ' : 'NOT MET '} ${goal.what}: ${figure}`);
    }
    const shown = Object.entries(figures)
      .filter(([, value]) => !(Array.isArray(value) && value.length === 0))
      .map(([name, value]) => `${name} ${number(value)}`);
    if (shown.length > 0) say(`            ${shown.join(' · ')}`);
  }
  return missed;
}

/** An expected failure, shown without a stack. */
class Refusal extends Error {}

const options = {
  only: { type: 'string', default: '' },
  scale: { type: 'string', default: '1' },
  help: { type: 'boolean', default: false },
};

function read(args) {
  try {
    const { only, ...values } = parseArgs({ args, options }).values;
    const rows = only.split(',').filter(Boolean);
    if (!(Number(values.scale) > 0)) throw new Error('--scale must be a number above 0');
    if (!rows.every((row) => /^R\d+$/.test(row))) throw new Error('--only takes rows such as R3,R12');
    return { ...values, rows };
  } catch (error) {
    throw new Refusal(error.message);
  }
}

/**
 * Returns the command `faults`. It takes its arguments and resolves with an exit code. `runTests` runs the tests with
 * the given arguments and environment, and also resolves with an exit code.
 */
export const runFaults = (runTests, say) => async (args) => {
  const values = read(args);
  if (values.help) {
    say(usage);
    return 0;
  }
  const { rows } = values;
  const folder = mkdtempSync(join(tmpdir(), 'petrel-faults-'));
  const file = join(folder, 'figures.jsonl');
  // A test title begins with the numbers (R1, R2, …) of the goals that it checks.
  const filter = rows.length > 0 ? ['--testNamePattern', `\\b(${rows.join('|')})\\b`] : [];
  try {
    const code = await runTests(['--project', 'long', 'test/faults', ...filter], {
      PETREL_FAULTS_SCALE: values.scale,
      PETREL_TEST_PROXY: '1',
      PETREL_FAULTS_REPORT: file,
    });
    const kept = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
    const missed = print(
      kept.map((line) => JSON.parse(line)),
      say,
    );
    const outcome = missed > 0 ? `${missed} goals are NOT MET` : 'All goals reached in this run are met';
    const verdict = kept.length > 0 ? outcome : 'No figures';
    say(`\n${verdict} at scale ${values.scale}${code === 0 ? '' : '; a test failed: see the errors above'}`);
    return code !== 0 || missed > 0 || kept.length === 0 ? 1 : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
