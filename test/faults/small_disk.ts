/**
 * Provides file systems of a few megabytes that a test may fill. Servers on these file systems are restarted whenever
 * they exit.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../support/servers.js';
import type { Restartable } from './backends.js';

export interface SmallDisk {
  readonly dir: string;
  fill(): void;
  free(): void;
  close(): void;
}

export function smallDisk(megabytes: number): SmallDisk | null {
  const dir = temporaryFolder();
  const options = `size=${megabytes}m,mode=0711`;
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', dir]).status !== 0) {
    rmdirSync(dir);
    return null;
  }
  const ballast = join(dir, 'ballast');
  return {
    dir,
    fill() {
      const file = openSync(ballast, 'a');
      const chunk = Buffer.alloc(65_536, 1);
      try {
        for (let bytes = chunk.length; bytes > 0; ) {
          try {
            writeSync(file, chunk, 0, bytes);
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
            bytes >>= 1;
          }
        }
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(ballast, { force: true }),
    close() {
      const { stderr, status } = spawnSync('umount', [dir], { encoding: 'utf8' });
      if (status !== 0) throw new Error(stderr);
      rmdirSync(dir);
    },
  };
}

export interface Supervised {
  readonly restarts: number;
  stop(): Promise<void>;
}

const lookMs = 500;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Restarts a server whenever it has exited, as a supervisor does. Retries a failed start. */
export function supervise(server: Restartable): Supervised {
  let stopped = false;
  let restarts = 0;
  const running = (async () => {
    while (!stopped) {
      await sleep(lookMs);
      if (stopped || isAlive(server.pid)) continue;
      await server.start().then(
        () => restarts++,
        () => undefined,
      );
    }
  })();
  return {
    get restarts() {
      return restarts;
    },
    async stop() {
      stopped = true;
      await running;
    },
  };
}
