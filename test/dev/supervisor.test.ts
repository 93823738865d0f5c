import { readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { commandOf } from '../../src/dev/processes.js';
import { runRole, startRole } from '../../src/dev/role.js';
import { RoleLog, summarise } from '../../src/dev/role_log.js';
import { type Running, type Supervised, supervise } from '../../src/dev/supervisor.js';
import { limits } from '../../src/limits.js';
import { temporaryFolder } from '../support/servers.js';

const main = fileURLToPath(new URL('./fake_main.mjs', import.meta.url));
const never = new AbortController().signal;

let dir: string;
let lines: string[];
let supervised: Supervised[];

beforeEach(() => {
  dir = temporaryFolder();
  lines = [];
  supervised = [];
});

afterEach(async () => {
  await Promise.all(supervised.map((one) => one.stop(AbortSignal.abort())));
  await rm(dir, { recursive: true, force: true });
});

const say = (line: string) => void lines.push(line);

function role(name = 'flush', env: Record<string, string> = {}) {
  const log = new RoleLog(name, join(dir, `${name}.log`), say);
  return (signal: AbortSignal = never) =>
    startRole({ main, role: name, env: { ...process.env, ...env }, log, signal });
}

function keep<T extends Running>(first: T, start: (signal: AbortSignal) => Promise<T>): Supervised {
  const one = supervise(first, { name: 'flush', start, log: say, onChange: () => lines.push('changed') });
  supervised.push(one);
  return one;
}

test('a killed role is restarted, and the supervisor reports its new pid', async () => {
  const start = role();
  const first = await start();
  const kept = keep(first, start);
  expect(kept.pid).toBe(first.pid);
  process.kill(first.pid, 'SIGKILL');
  await vi.waitFor(() => expect(lines).toHaveLength(4), 30_000);
  expect(kept.pid).not.toBe(first.pid);
  expect(lines).toEqual([
    'changed',
    'flush ended (signal SIGKILL); restarting in 0.1 s',
    `flush is running again (pid ${kept.pid})`,
    'changed',
  ]);
});

test('the pause between failed starts begins at 0.1 s and doubles each time', async () => {
  const first = await role()();
  const tried: number[] = [];
  const ended = performance.now();
  keep(first, async () => {
    tried.push(performance.now() - ended);
    throw new Error('no disk');
  });
  process.kill(first.pid, 'SIGKILL');
  await vi.waitFor(() => expect(tried).toHaveLength(4), 30_000);
  const gaps = tried.slice(1).map((at, index) => at - (tried[index] ?? 0));
  for (const [index, pause] of [200, 400, 800].entries()) {
    expect(gaps[index]).toBeGreaterThan(pause - 20);
    expect(lines).toContain(`flush could not be started: no disk; retrying in ${pause / 1_000} s`);
  }
});

test('stopping a supervised role ends its process and prevents a restart', async () => {
  const start = role();
  const running = keep(await start(), start);
  const pid = running.pid ?? 0;
  await running.stop();
  expect(commandOf(pid)).toBeUndefined();

  lines.length = 0;
  const inPause = keep(await start(), start);
  process.kill(inPause.pid ?? 0, 'SIGKILL');
  await vi.waitFor(() => expect(lines).toContain('flush ended (signal SIGKILL); restarting in 0.1 s'), {
    timeout: 30_000,
    interval: 5,
  });
  await inPause.stop();

  const first = await start();
  let child: Running | undefined;
  const inStart = keep(first, async (signal) => {
    child = await start();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return child;
  });
  process.kill(first.pid, 'SIGKILL');
  await vi.waitFor(() => expect(child).toBeDefined(), 30_000);
  await inStart.stop();
  expect(commandOf(child?.pid ?? 0)).toBeUndefined();

  lines.length = 0;
  await sleep(500);
  expect(lines).toEqual([]);
});

test('if the caller asks for a quicker stop, a role that ignores SIGTERM is killed earlier', async () => {
  const stubborn = join(dir, 'stubborn.mjs');
  const { writeFileSync } = await import('node:fs');
  writeFileSync(
    stubborn,
    "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); process.send({ type: 'ready' });",
  );
  const log = new RoleLog('flush', join(dir, 'flush.log'), say);
  const running = await startRole({ main: stubborn, role: 'flush', env: process.env, log, signal: never });
  const hurry = new AbortController();
  const since = performance.now();
  const stopped = running.stop(hurry.signal);
  setTimeout(() => hurry.abort(), 300);
  await stopped;
  expect(await running.exited).toBe('signal SIGKILL');
  expect(performance.now() - since).toBeGreaterThan(1_200);
  expect(performance.now() - since).toBeLessThan(limits.shutdown_ms_max);
});

test("if a role ends before it is ready, the error names the role's last error and the path of its log", async () => {
  const log = new RoleLog('migrate', join(dir, 'migrate.log'), say);
  const env = { ...process.env, FAKE_MIGRATE_FAILS: '1' };
  const started = startRole({ main, role: 'migrate', env, log, signal: never });
  await expect(started).rejects.toThrow(
    `migrate did not start (exit code 1): migration 7 does not apply (log: ${log.path})`,
  );
  await expect(runRole({ main, role: 'migrate', env, log, signal: never })).rejects.toThrow(/migration 7/);
  await runRole({ main, role: 'migrate', env: process.env, log, signal: never });
});

test('the terminal shows only some warnings and errors of a role, and shortens long lines', async () => {
  const start = role('deliver');
  const running = await start();
  await running.stop();
  await expect.poll(() => readFileSync(join(dir, 'deliver.log'), 'utf8')).toContain('deliver serves');
  expect(lines).toEqual([]);

  expect(summarise('{"level":30,"msg":"fine"}')).toBeUndefined();
  expect(summarise('{"level":40,"msg":"slow"}')).toEqual({ severe: false, text: 'slow' });
  expect(summarise('{"level":50,"msg":"broke","err":{"message":"why","stack":"at x"}}')).toEqual({
    severe: true,
    text: 'broke: why',
  });
  expect(summarise('    at Object.<anonymous> (file.js:1:1)')).toBeUndefined();
  expect(summarise('x'.repeat(10_000))?.text).toHaveLength(300);

  const { Readable } = await import('node:stream');
  const log = new RoleLog('front', join(dir, 'front.log'), say);
  log.follow(Readable.from(Array.from({ length: 50 }, (_, index) => `{"level":40,"msg":"w${index}"}\n`)));
  await expect.poll(() => readFileSync(log.path, 'utf8').split('\n')).toHaveLength(51);
  expect(lines).toHaveLength(11);
  expect(lines[0]).toBe('front: w0');
  expect(lines[10]).toBe(`front: more in ${log.path}`);
});

test('a front that waits for a stalled request during its shutdown is not killed', async () => {
  const log = new RoleLog('front', join(dir, 'front.log'), say);
  const draining = join(dir, 'draining.mjs');
  const drain_ms = 1_000;
  const stop_ms = drain_ms + limits.shutdown_ms_max + limits.connection_linger_ms_max;
  writeFileSync(
    draining,
    `process.once('SIGTERM', () => setTimeout(() => process.exit(0), ${stop_ms}));
     setInterval(() => {}, 1_000);
     process.send({ type: 'ready' });`,
  );
  const env = { ...process.env, DRAIN_MS: String(drain_ms) };
  const running = await startRole({ main: draining, role: 'front', env, log, signal: never });
  await running.stop();
  expect(await running.exited).toBe('exit code 0');
});
