import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import type { DevInfo } from '../../src/dev/announce.js';
import { freePort } from '../../src/dev/processes.js';
import { temporaryFolder } from '../support/servers.js';

const launcher = fileURLToPath(new URL('../../infra/build/launch.mjs', import.meta.url));

/**
 * The maximum CPU time of an idle role, in percent of one core. On an idle machine, each role uses well under half a
 * percent. On a busy machine, a role uses several times as much.
 */
const share_max = 3;
/**
 * Unlike CPU time, wake-ups do not depend on other processes. A role wakes up to 20 times a second. A single timer with
 * an interval of 5 ms would wake a role 200 times a second.
 */
const wakes_per_second_max = 40;
/**
 * The roles cause about 22 commands a second, including commands inside scripts. Counting the backlog of every
 * partition would cause 26 more.
 */
const commands_per_second_max = 35;
const settle_ms = 15_000;
const measured_ms = 20_000;

function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  const ticks_per_second = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  return ((user + system) / ticks_per_second) * 1_000;
}

const wakesOf = (pid: number): number =>
  Number(/^voluntary_ctxt_switches:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

test.runIf(process.platform === 'linux')(
  `idle roles of npm start use at most ${share_max} % of a core and wake at most ${wakes_per_second_max} times a second each`,
  async () => {
    const top = temporaryFolder();
    const home = join(top, 'home');
    const child = spawn(process.execPath, [launcher, 'dev'], {
      env: { PATH: process.env.PATH, HOME: top, PETREL_HOME: home, PORT: String(await freePort()) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out += chunk));
    const ended = once(child, 'close');
    let redis: Redis | undefined;
    try {
      await vi.waitFor(
        () => {
          if (child.exitCode !== null) throw new Error(out);
          expect(out).toContain('Ctrl-C stops everything');
        },
        { timeout: 90_000, interval: 100 },
      );
      const { pids, redis_url }: DevInfo = JSON.parse(readFileSync(join(home, 'dev.json'), 'utf8'));
      const roles = Object.entries({ front: pids.front, deliver: pids.deliver, flush: pids.flush });
      redis = new Redis(redis_url);
      const commands = async () =>
        Number(/^total_commands_processed:(\d+)/m.exec((await redis?.info('stats')) ?? '')?.[1]);
      const measure = async () => ({
        at: performance.now(),
        cpu: roles.map(([, [pid = 0]]) => cpuOf(pid)),
        wakes: roles.map(([, [pid = 0]]) => wakesOf(pid)),
        commands: await commands(),
      });
      await sleep(settle_ms);
      const before = await measure();
      await sleep(measured_ms);
      const after = await measure();
      const ms = after.at - before.at;
      const used = roles.map(([role], i) => ({
        role,
        share: (((after.cpu[i] ?? 0) - (before.cpu[i] ?? 0)) / ms) * 100,
        wakes: (((after.wakes[i] ?? 0) - (before.wakes[i] ?? 0)) / ms) * 1_000,
      }));
      for (const { role, share, wakes } of used) {
        expect(share, `CPU share of ${role} in ${JSON.stringify(used)}`).toBeLessThan(share_max);
        expect(wakes, `wake-ups of ${role} in ${JSON.stringify(used)}`).toBeLessThan(wakes_per_second_max);
      }
      const perSecond = ((after.commands - before.commands) / ms) * 1_000;
      expect(perSecond, 'Redis commands a second').toBeLessThan(commands_per_second_max);
    } finally {
      redis?.disconnect();
      child.kill('SIGTERM');
      await ended;
      await rm(top, { recursive: true, force: true });
    }
  },
  240_000,
);
