import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { processesOf } from './run_processes.mjs';
import { temporaryFolder } from './servers.js';

const program = fileURLToPath(new URL('./run_processes.mjs', import.meta.url));

test.runIf(process.platform === 'linux')(
  'a process of a test run is found by its command line, environment or working folder, and killed when the runner ends',
  async () => {
    const [folder, other] = [temporaryFolder(), temporaryFolder()];
    const sleeping = ['-c', 'sleep 60 & wait'];
    const started = [
      spawn('sh', [...sleeping, folder], { env: {}, detached: true }),
      spawn('sh', sleeping, { env: { FILES_DIR: `${folder}/files` } }),
      spawn('sh', sleeping, { env: {}, cwd: folder }),
      spawn('sh', sleeping, { env: {}, cwd: other }),
    ];
    const stranger = spawn('sleep', ['60'], { env: {} });
    const guard = spawn(process.execPath, [program, folder, other], { stdio: ['pipe', 'ignore', 'inherit'] });
    const pids = () => processesOf([folder, other], [guard.pid ?? 0]).map(({ pid }) => pid);
    await expect.poll(pids).toEqual(expect.arrayContaining(started.map(({ pid }) => pid)));
    guard.stdin.end();
    await once(guard, 'exit');
    expect(pids()).toEqual([]);
    expect([folder, other].map(existsSync)).toEqual([false, false]);
    expect(stranger.exitCode).toBe(null);
    stranger.kill();
  },
);
