/**
 * The test suites by name. Each takes the arguments of its command and resolves with an exit code. Missing programs are
 * installed.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { dist, run, say } from './checkout.mjs';
import { runFaults } from './faults.mjs';
import { balancers, ensurePrograms, isThere, watchers } from './programs.mjs';
import { runTopologies } from './topologies.mjs';

const built = (...path) => import(pathToFileURL(join(dist, ...path)).href);

async function runTests(args, env = {}) {
  const { ensureRedis } = await built('dev', 'redis_install.js');
  await ensureRedis(say);
  const runner = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
  // A Ctrl-C reaches the test runner through the terminal. We wait until it has cleaned up.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
  return run(process.execPath, [runner, 'run', ...args], { env: { ...process.env, ...env } });
}

/** The path of Chromium, if installed, in the environment variable that the tests read. */
async function browser() {
  const { findChromium } = await built('dev', 'chromium.js');
  const found = findChromium();
  if (!found) say('Skipped: the browser, no Chromium was found (npm run test:ui installs it)');
  return found ? { PETREL_CHROMIUM: found } : {};
}

const namesFiles = (args) => args.some((arg) => !arg.startsWith('-'));

/** The short tier, or the named files of any tier. */
async function runShort(args) {
  return runTests(args, { ...(await browser()), ...(namesFiles(args) ? {} : { PETREL_TEST_QUICK: '1' }) });
}

/** The long tests that can run with the installed programs. Prints what is skipped. */
async function longTier() {
  const env = await browser();
  const ask = (variable, programs, what, command) => {
    const missing = Object.keys(programs).filter((program) => !isThere(program));
    if (missing.length === 0) env[variable] = '1';
    else say(`Skipped: ${what}, no ${missing.join(', ')} was found (${command} installs it)`);
  };
  ask('PETREL_TEST_PROXY', balancers, 'balancers', 'npm run test:proxy');
  ask('PETREL_TEST_OBSERVABILITY', watchers, 'alerts', 'npm run test:observability');
  say('Skipped: the image (npm run test:image) and an installation from the registry (npm run test:fresh)');
  return env;
}

/** Both tiers, then the tests that start a service again on a Redis Cluster. Continues after a failure. */
async function runAll(args) {
  const codes = [await runShort([])];
  const env = { ...(await longTier()), PETREL_GARBAGE_CASES: '10000' };
  codes.push(await runTests(['.long.test.ts', 'test/api/garbage', ...args], env));
  codes.push(await runTopologies(runTests, say)(['--only', 'cluster']));
  return Math.max(...codes);
}

async function runInBrowser(args) {
  const { ensureChromium } = await built('dev', 'chromium.js');
  return runTests(['--project', 'ui', ...args], { PETREL_CHROMIUM: await ensureChromium(say) });
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
  // One fault row needs the balancers.
  if ((rows === '' || /\bR19\b/.test(rows)) && !args.includes('--help')) ensurePrograms(balancers, say);
  return runFaults(runTests, say)(args);
}

export const suites = {
  test: runShort,
  'test:all': runAll,
  'test:ui': runInBrowser,
  'test:proxy': runBehindBalancers,
  'test:observability': runUnderPrometheus,
  'test:cluster': runTopologies(runTests, say),
  faults: runAllFaults,
};
