/**
 * Tests restarts of `npm start`. After a clean stop, a restart changes nothing. After a crash, a restart skips ids and
 * logs a warning.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { DevInfo } from '../../src/dev/announce.js';
import { freePort } from '../../src/dev/processes.js';
import { temporaryFolder } from '../support/servers.js';

const launcher = fileURLToPath(new URL('../../infra/build/launch.mjs', import.meta.url));
const warning = 'Redis was restarted, replaced or moved';

let top: string;
let home: string;
let running: ChildProcess | undefined;

beforeEach(() => {
  execFileSync(process.execPath, [launcher, 'build']);
  top = temporaryFolder();
  home = join(top, 'home');
});

afterEach(async () => {
  await stop();
  await rm();
});

const rm = async () => rmSync(top, { recursive: true, force: true });

async function stop(): Promise<void> {
  if (!running || running.exitCode !== null || running.signalCode !== null) return;
  const ended = once(running, 'exit');
  running.kill('SIGTERM');
  await ended;
}

/**
 * Starts the installation and sends a message from alice to the demo bot. Returns the id of the message, and the log.
 */
async function startAndSend(): Promise<{ messageId: number; info: DevInfo; log: () => string }> {
  const child = spawn(process.execPath, [launcher, 'dev'], {
    env: { PATH: process.env.PATH, HOME: top, PETREL_HOME: home, PORT: String(await freePort()) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running = child;
  let out = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out += chunk));
  await vi.waitFor(
    () => {
      if (child.exitCode !== null) throw new Error(out);
      expect(out).toContain('Ctrl-C stops everything');
    },
    { timeout: 90_000, interval: 50 },
  );
  const info: DevInfo = JSON.parse(readFileSync(join(home, 'dev.json'), 'utf8'));
  const call = async (path: string, body: object) => {
    const answer = await fetch(`${info.base_url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${info.users[0]?.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return (await answer.json()) as { ok: boolean; result: { message_id: number } };
  };
  await call('/api/bots/petrel_demo_bot/start', {});
  const sent = await call(`/api/chats/${info.bot.id}/messages`, { text: 'hello' });
  expect(sent).toMatchObject({ ok: true });
  return { messageId: sent.result.message_id, info, log: () => out };
}

test('ids are skipped only if Redis crashed or started with an older copy of its data', async () => {
  const first = await startAndSend();
  await stop();
  const copy = join(top, 'copy');
  cpSync(join(home, 'redis'), join(copy, 'redis'), { recursive: true, preserveTimestamps: true });

  const second = await startAndSend();
  expect(second.messageId - first.messageId).toBeLessThan(10);
  expect(second.log()).not.toContain(warning);
  await stop();

  const third = await startAndSend();
  expect(third.messageId - second.messageId).toBeLessThan(10);
  expect(third.log()).not.toContain(warning);
  process.kill(third.info.pids.redis ?? 0, 'SIGKILL');
  await vi.waitFor(() => expect(third.log()).toContain(warning), { timeout: 60_000, interval: 100 });
  await stop();

  rmSync(join(home, 'redis'), { recursive: true });
  cpSync(join(copy, 'redis'), join(home, 'redis'), { recursive: true, preserveTimestamps: true });
  const restored = await startAndSend();
  expect(restored.messageId - third.messageId).toBeGreaterThanOrEqual(10_000);
  await vi.waitFor(() => expect(restored.log()).toMatch(/Redis (was restarted|lost acknowledged changes)/), {
    timeout: 60_000,
    interval: 100,
  });
}, 400_000);
