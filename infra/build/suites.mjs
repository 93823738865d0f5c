/**
 * Defines the test suites by name. A suite is a function that takes the arguments of its command and resolves with an
 * exit code. It installs missing programs first.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { dist, Refusal, root, run, say } from './checkout.mjs';
import { debianLibraries, hasDebianLibrary } from './client_libraries.mjs';
import { runFaults } from './faults.mjs';
import { readFailures, readMinutes, recordTo, refuseAfterInterrupt, rotate, runParts } from './parts.mjs';
import { balancers, ensurePrograms, isThere, watchers } from './programs.mjs';
import { runSimulator } from './simulate.mjs';
import { runTopologies } from './topologies.mjs';

const built = (...path) => import(pathToFileURL(join(dist, ...path)).href);

const runner = () =>
  join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');

// Ctrl-C reaches the test runner through the terminal. The launcher waits until the runner has cleaned up.
const runTests = refuseAfterInterrupt(async (args, env = {}) => {
  const { ensureRedis } = await built('dev', 'redis_install.js');
  await ensureRedis(say);
  return run(process.execPath, [runner(), 'run', ...args], { env: { ...process.env, ...env } });
});

/** Returns the environment variable with the path of Chromium for the tests. Empty if Chromium is not installed. */
async function browser() {
  const { findChromium } = await built('dev', 'chromium.js');
  const found = findChromium();
  if (!found) say('Skipped: the browser, no Chromium was found (npm run test:ui installs it)');
  return found ? { PETREL_CHROMIUM: found } : {};
}

const namesFiles = (args) => args.some((arg) => !arg.startsWith('-'));

/** Runs the short tier. If the arguments name test files, runs these files instead, whatever their tier. */
async function runShort(args) {
  return runTests(args, { ...(await browser()), ...(namesFiles(args) ? {} : { PETREL_TEST_QUICK: '1' }) });
}

/**
 * Returns the environment variables that enable the long tests whose programs are installed. Prints which tests are
 * skipped.
 */
async function longTier() {
  const env = await browser();
  const ask = (variable, programs, what, command) => {
    const missing = Object.keys(programs).filter((program) => !isThere(program));
    if (missing.length === 0) env[variable] = '1';
    else say(`Skipped: ${what}, no ${missing.join(', ')} was found (${command} installs it)`);
  };
  ask('PETREL_TEST_PROXY', balancers, 'balancers', 'npm run test:proxy');
  ask('PETREL_TEST_OBSERVABILITY', watchers, 'alerts', 'npm run test:observability');
  for (const name of Object.keys(debianLibraries)) hasDebianLibrary(name, say);
  if (process.env.PETREL_TEST_IMAGE === undefined) say('Skipped: the image (npm run test:image)');
  say('Skipped: an installation from the registry (npm run test:fresh)');
  return env;
}

/**
 * The parts of the tests that may take more than `usual_minutes`, with their longest duration on two cores, in minutes.
 */
const usual_minutes = 4;
const minutesOf = {
  'long tests of the short tier': 8,
  'npm run test:cluster -- --only cluster': 24,
  'test/deploy/image.long.test.ts': 6,
  'test/deploy/operating.long.test.ts': 8,
  'test/simulate/defects.long.test.ts': 5,
  'test/simulate/simulation.long.test.ts': 7,
  'test/ui/gallery.long.test.ts': 30,
};

/**
 * Returns the test files of the long tier that have tests to run under the environment `env`, and whose paths contain
 * one of `args`.
 */
function longFiles(args, env) {
  const listed = spawnSync(process.execPath, [runner(), 'list', '--filesOnly', ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  if (listed.status !== 0) throw new Refusal(`the tests cannot be listed: ${listed.stderr.trim()}`);
  return [...new Set(listed.stdout.match(/test\S+\.long\.test\.ts/g))];
}

/**
 * Returns the test files of the short tier in which some tests run only in the long tier. These files import
 * `test/support/tiers.ts`.
 */
const partlyLongFiles = () =>
  readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join('test', file))
    .filter((file) => readFileSync(join(root, file), 'utf8').includes("/support/tiers.js'"));

/**
 * Runs the long tier, file by file. Then runs all tests that start a service a second time, on a Redis Cluster.
 * Continues after a failure. `--minutes N` limits the time.
 */
async function runLong(args) {
  const { minutes, rest } = readMinutes(args);
  const env = await longTier();
  const records = mkdtempSync(join(tmpdir(), 'petrel-long-'));
  const parts = [];
  const add = (name, start) => {
    const record = join(records, `${parts.length}.json`);
    const part = { name, minutes: minutesOf[name] ?? usual_minutes };
    parts.push({ ...part, run: () => start(recordTo(record)), failures: () => readFailures(record) });
  };
  for (const file of longFiles(rest, env)) add(file, (record) => runTests([file, ...record], env));
  if (rest.length === 0) {
    add('long tests of the short tier', (record) => runTests([...partlyLongFiles(), ...record], env));
    const garbage = 'test/api/garbage';
    add(garbage, (record) => runTests([garbage, ...record], { PETREL_GARBAGE_CASES: '10000' }));
    const properties = ['test/rules/entities', 'test/lua/consumer'];
    add('properties', (record) => runTests([...properties, ...record], { PETREL_PROPERTY_FACTOR: '10' }));
    add('npm run test:cluster -- --only cluster', (record) =>
      runTopologies((files, more) => runTests([...files, ...record], more), say)(['--only', 'cluster']),
    );
  }
  const commit = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' });
  const seed = Number.isFinite(minutes) && commit.status === 0 ? commit.stdout : '0';
  try {
    return await runParts(rotate(parts, seed), minutes, say);
  } finally {
    rmSync(records, { recursive: true, force: true });
  }
}

/** Runs both tiers, and continues after a failure. */
async function runAll(args) {
  const short = await runShort([]);
  return Math.max(short, await runLong(args));
}

async function runInBrowser(args) {
  const { ensureChromium } = await built('dev', 'chromium.js');
  const env = { PETREL_CHROMIUM: await ensureChromium(say), PETREL_UI_COMPARE: '1' };
  return runTests(['--project', 'ui', ...args], env);
}

function runBehindBalancers(args) {
  ensurePrograms(balancers, say);
  return runTests(['test/proxy', 'test/faults/rolling', ...args], { PETREL_TEST_PROXY: '1' });
}

function runUnderPrometheus(args) {
  ensurePrograms(watchers, say);
  return runTests(['test/observability', ...args], { PETREL_TEST_OBSERVABILITY: '1' });
}

function runAllFaults(args) {
  const rows = args.filter((arg) => /R\d/.test(arg)).join();
  // One of the fault tests, R19, needs HAProxy and nginx.
  if ((rows === '' || /\bR19\b/.test(rows)) && !args.includes('--help')) ensurePrograms(balancers, say);
  return runFaults(runTests, say)(args);
}

async function runSimulation(args) {
  const { ensureRedis } = await built('dev', 'redis_install.js');
  await ensureRedis(say);
  return runSimulator(args);
}

export const suites = {
  test: runShort,
  'test:long': runLong,
  'test:all': runAll,
  'test:ui': runInBrowser,
  'test:proxy': runBehindBalancers,
  'test:observability': runUnderPrometheus,
  'test:cluster': runTopologies(runTests, say),
  faults: runAllFaults,
  simulate: runSimulation,
};
