/** CPU use of an installation that nobody uses. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import type { DevInfo } from '../../src/dev/announce.js';
import { freePort } from '../../src/dev/processes.js';
import { temporaryFolder } from '../support/servers.js';

const launcher = fileURLToPath(new URL('../../infra/build/launch.mjs', import.meta.url));

/** Percent of one core. On an idle machine each role uses well under half a percent; on a busy machine several times as much. */
const share_max = 3;
const settle_ms = 15_000;
const measured_ms = 20_000;

/** CPU time used so far, in ms. */
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

test.runIf(process.platform === 'linux')(
  `idle roles of npm start use at most ${share_max} % of a core each`,
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
    try {
      await vi.waitFor(
        () => {
          if (child.exitCode !== null) throw new Error(out);
          expect(out).toContain('Ctrl-C stops everything');
        },
        { timeout: 60_000, interval: 100 },
      );
      const { pids }: DevInfo = JSON.parse(readFileSync(join(home, 'dev.json'), 'utf8'));
      const roles = Object.entries({ front: pids.front, deliver: pids.deliver, flush: pids.flush });
      await sleep(settle_ms);
      const cpu = () => roles.map(([, [pid = 0]]) => cpuOf(pid));
      const [before, since] = [cpu(), performance.now()];
      await sleep(measured_ms);
      const ms = performance.now() - since;
      const after = cpu();
      const shares = roles.map(([role], i) => [role, (((after[i] ?? 0) - (before[i] ?? 0)) / ms) * 100]);
      for (const [role, share] of shares)
        expect(share, `${role} of ${JSON.stringify(shares)}`).toBeLessThan(share_max);
    } finally {
      child.kill('SIGTERM');
      await ended;
      await rm(top, { recursive: true, force: true });
    }
  },
  180_000,
);
