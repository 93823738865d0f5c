/** Helpers for the launcher and the build: paths, output to the terminal, and a lock between parallel launches. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const dist = join(root, 'dist');
export const modules = join(root, 'node_modules');

export const say = (line) => process.stdout.write(`${line}\n`);

/** An expected failure. It is shown without a stack. */
export class Refusal extends Error {}

export const readIfThere = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Runs `work` while holding a lock that all launches of this checkout share. Takes over the lock of a dead process. */
export async function alone(lock, work) {
  for (let waited = 0; ; waited += 50) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx' });
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      const holder = Number(readIfThere(lock));
      // An empty lock file means that a process is just writing it, or was killed before it could.
      if (holder ? !alive(holder) : waited > 1_000) rmSync(lock, { force: true });
      else if (waited === 1_000) say('Another launch is using this folder: waiting for it');
      await sleep(50);
    }
  }
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

/** Runs a program on this terminal. Resolves with its exit code. */
export function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', ...options });
    child.once('error', () => resolve(127));
    child.once('close', (code, signal) => resolve(signal ? 1 : (code ?? 1)));
  });
}
