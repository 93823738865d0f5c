/**
 * Runs the built `dev` in a separate process, so that tests can send signals to it. `fake_main.mjs` takes the place of
 * the roles.
 */
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../dist/config/config.js';
import { runDev } from '../../dist/dev/dev.js';

await runDev(readConfig(), { main: fileURLToPath(new URL('./fake_main.mjs', import.meta.url)) });
