/** What runs the tests: all of them, those in a browser, or those of faults in their long form. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The work of a role, as a function of its arguments that resolves to an exit code. */
export function testWork(role, { dist, run, say }) {
  const built = (name) => import(pathToFileURL(join(dist, 'local', name)).href);

  async function runTests(args, env = {}) {
    const { ensureRedis } = await built('redis_install.js');
    await ensureRedis(say);
    const runner = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
    // A Ctrl-C reaches the runner through the terminal; we wait for it to clean up.
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
    return run(process.execPath, [runner, 'run', ...args], { env: { ...process.env, ...env } });
  }

  switch (role) {
    case 'faults':
      return async (args) => (await import('./faults.mjs')).runFaults(runTests, say)(args);
    case 'test-ui':
      return async (args) => {
        const { ensureChromium } = await built('chromium.js');
        const env = { PETREL_CHROMIUM: await ensureChromium(say), PETREL_UI: 'long' };
        return runTests(['--project', 'ui', ...args], env);
      };
    default:
      return async (args) => {
        // Browser tests are among all others, in a short form, where a browser is there already.
        const found = (await built('chromium.js')).findChromium();
        return runTests(args, found ? { PETREL_CHROMIUM: found } : {});
      };
  }
}
