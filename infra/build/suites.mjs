/** The test suites by name; each takes the arguments of its command and resolves with an exit code. What a suite lacks is installed. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { dist, run, say } from './checkout.mjs';
import { runFaults } from './faults.mjs';
import { balancers, ensurePrograms, watchers } from './programs.mjs';
import { runTopologies } from './topologies.mjs';

const built = (...path) => import(pathToFileURL(join(dist, ...path)).href);

async function runTests(args, env = {}) {
  const { ensureRedis } = await built('dev', 'redis_install.js');
  await ensureRedis(say);
  const runner = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
  // A Ctrl-C reaches the runner through the terminal; we wait for it to clean up.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
  return run(process.execPath, [runner, 'run', ...args], { env: { ...process.env, ...env } });
}

/** Browser tests are among all others, in a short form, where a browser is there already. */
async function runAll(args) {
  const { findChromium } = await built('dev', 'chromium.js');
  const found = findChromium();
  return runTests(args, found ? { PETREL_CHROMIUM: found } : {});
}

async function runInBrowser(args) {
  const { ensureChromium } = await built('dev', 'chromium.js');
  const env = { PETREL_CHROMIUM: await ensureChromium(say), PETREL_UI: 'long' };
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
  // One row goes through balancers.
  if ((rows === '' || /\bR19\b/.test(rows)) && !args.includes('--help')) ensurePrograms(balancers, say);
  return runFaults(runTests, say)(args);
}

export const suites = {
  test: runAll,
  'test:ui': runInBrowser,
  'test:proxy': runBehindBalancers,
  'test:observability': runUnderPrometheus,
  'test:cluster': runTopologies(runTests, say),
  faults: runAllFaults,
};
