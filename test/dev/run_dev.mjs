/** Runs the built `dev` with the stand-in for the roles, in a separate process that tests can signal. */
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../dist/config/config.js';
import { runDev } from '../../dist/dev/dev.js';

await runDev(readConfig(), { main: fileURLToPath(new URL('./fake_main.mjs', import.meta.url)) });
