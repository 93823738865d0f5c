/**
 * Starts the shared servers before the first test file, and stops them after the last test file. All temporary files of
 * the run are in one folder. If the system has enough memory, the data of PostgreSQL are in a second folder, which is
 * in memory. A run fails if any of its processes remain at the end. A guard process kills the remaining processes, even
 * if the run itself was killed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { createMemoryFolder, removeLeftovers } from './memory_folder.js';
import { killProcessesOf, processesOf } from './run_processes.mjs';
import { startTestServers, temporaryFolder } from './servers.js';

const watcher = fileURLToPath(new URL('./run_processes.mjs', import.meta.url));
/** How long processes may run after their parent has ended. */
const ending_ms_max = 10_000;
/** How long a worker may take to stop its service. */
const worker_ms_max = 60_000;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await removeLeftovers();
  const folder = temporaryFolder();
  const memory = createMemoryFolder() ?? folder;
  const folders = [...new Set([folder, memory])];
  // The guard runs in a separate process group, so that Ctrl-C in the terminal does not end the guard. Its stdin closes
  // when this process ends.
  const guard = spawn(process.execPath, [watcher, ...folders], {
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  // Test workers inherit these variables.
  process.env.TMPDIR = folder;
  process.env.PETREL_TEST_MEMORY = memory;
  const servers = await startTestServers();
  project.provide('redisUrl', servers.redisUrl);
  project.provide('databaseUrl', servers.databaseUrl);
  return async () => {
    const except = [process.pid, guard.pid ?? 0];
    const others = () => processesOf(folders, except);
    // The test runner calls this function while its workers stop their services. The services write their last rows to
    // the shared database.
    await until(
      () => !others().some(({ command }) => command.includes('/vitest/dist/workers/')),
      worker_ms_max,
    );
    await servers.stop();
    try {
      await until(() => others().length === 0, ending_ms_max);
      await failOnLeft(others(), folders, except);
    } finally {
      guard.stdin?.end();
      await once(guard, 'exit');
    }
  };
}

/** Resolves when the condition is true, or after the maximum time. */
async function until(isTrue: () => boolean, msMax: number): Promise<void> {
  const end = performance.now() + msMax;
  while (!isTrue() && performance.now() < end) await sleep(50);
}

/** Sets the exit code, because the test runner only logs an error that is thrown here. */
async function failOnLeft(
  left: ReturnType<typeof processesOf>,
  folders: readonly string[],
  except: readonly number[],
): Promise<void> {
  if (left.length === 0) return;
  await killProcessesOf(folders, except);
  process.exitCode = 1;
  const lines = left.map(({ pid, command }) => `  ${pid} ${command}`);
  throw new Error(`the tests left processes, which were killed:\n${lines.join('\n')}`);
}
