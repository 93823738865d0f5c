/** Tests that a test server uses no store of an installation, and leaves no files or processes behind. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { runOn, testing } from './server.js';

vi.setConfig({ testTimeout: 300_000 });

/** A busy machine may take long to stop PostgreSQL. */
const patiently = { timeout: 60_000 };

/** Returns the folder of the test server on this port, if it exists. */
function folderOf(port: string): string | undefined {
  for (const root of ['/dev/shm', tmpdir()])
    try {
      const name = readdirSync(root).find((each) => each.endsWith(`-${port}`) && /^petrel-test-/.test(each));
      if (name !== undefined) return join(root, name);
    } catch {
      // Some systems have no /dev/shm, so the error is ignored.
    }
  return undefined;
}

const pidIn = (folder: string, file: string) =>
  Number(readFileSync(join(folder, file), 'utf8').split(/\s/, 1)[0]);

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const client = new URL('../../dist/testing/client.js', import.meta.url).href;

test('two test servers can run at the same time, ignore the stores of an installation, and leave no files or processes', async () => {
  let connections = 0;
  const store = createServer((socket) => {
    connections++;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(store, 'listening');
  onTestFinished(() => void store.close());
  const { port } = store.address() as AddressInfo;
  const settings = {
    REDIS_URL: `redis://127.0.0.1:${port}`,
    DATABASE_URL: `postgres://127.0.0.1:${port}/petrel`,
  };
  const [one, two] = await Promise.all([
    testing.startTestServer({ settings }),
    testing.startTestServer({ settings }),
  ]);
  const folders = [one, two].map(({ url }) => folderOf(new URL(url).port) as string);
  const pids = folders.map((folder) => pidIn(folder, 'redis/redis.pid'));
  const worlds = await Promise.all([one.world(), two.world()]);
  await worlds[0].person().send('hello');
  expect(await worlds[1].recording()).toEqual([]);
  const taken = new URL(one.url).port;
  const refused = await runOn(taken);
  expect(refused.code).toBe(1);
  expect(refused.log).toContain(
    `the test server cannot listen on 127.0.0.1 port ${taken}: the port is in use. Set PORT to another port`,
  );
  expect((await worlds[0].person().send('still here')).text).toBe('still here');
  await Promise.all([one.stop(), two.stop()]);
  expect(connections).toBe(0);
  expect([one, two].map(({ url }) => folderOf(new URL(url).port))).toEqual([undefined, undefined]);
  expect(pids.map(isRunning)).toEqual([false, false]);
});

test('a killed test runner leaves no process, and the next start removes the files and processes of a killed server', async () => {
  const runner = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `const { startTestServer } = await import('${client}');
      console.log((await startTestServer()).url);
      setInterval(() => {}, 1_000);`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [line] = await once(runner.stdout, 'data');
  const { port } = new URL(String(line).trim());
  const folder = folderOf(port) as string;
  const [server, redis] = [pidIn(folder, 'lock'), pidIn(folder, 'redis/redis.pid')];
  runner.kill('SIGKILL');
  await expect.poll(() => [server, redis].filter(isRunning), patiently).toEqual([]);
  expect(folderOf(port)).toBeUndefined();

  const killed = await testing.startTestServer();
  const left = folderOf(new URL(killed.url).port) as string;
  onTestFinished(() => rmSync(left, { recursive: true, force: true }));
  const pids = [pidIn(left, 'redis/redis.pid'), pidIn(left, 'postgres/data/postmaster.pid')];
  const pid = pidIn(left, 'lock');
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => isRunning(pid)).toBe(false);
  expect(pids.map(isRunning)).toEqual([true, true]);
  await (await testing.startTestServer()).stop();
  await expect.poll(() => pids.filter(isRunning), patiently).toEqual([]);
  expect(folderOf(new URL(killed.url).port)).toBeUndefined();
});
