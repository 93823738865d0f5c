import { execFile } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from './servers.js';

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** A test file whose worker needs the database after the last test. */
const testFile = `
import { connect } from 'node:net';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { inject, test } from 'vitest';

const { port, hostname } = new URL(inject('databaseUrl'));
const withWorker = test.extend('worker', { scope: 'worker' }, async ({}, { onCleanup }) => {
  onCleanup(async () => {
    await sleep(3_000);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.destroy();
    console.log('the database was reached');
  });
  return true;
});
withWorker('a test', ({ worker }) => void worker);
`;

test('the shared servers run until the last worker has stopped its service', async () => {
  const folder = temporaryFolder();
  symlinkSync(file('../../node_modules'), join(folder, 'node_modules'));
  const config = { test: { globalSetup: [file('global_setup.ts')], teardownTimeout: 60_000 } };
  writeFileSync(join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify(config)};`);
  writeFileSync(join(folder, 'one.test.mjs'), testFile);
  const vitest = join(folder, 'node_modules/vitest/vitest.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [vitest, 'run', '--root', folder], {
    cwd: folder,
  });
  expect(stdout).toContain('the database was reached');
});
