/**
 * Finds the processes of a test run. A process belongs to the run if its command line, environment or working folder
 * contains one of the run's temporary folders. Works only on Linux. When this file is run as a program, its arguments
 * are the folders. The program waits until its stdin closes, which happens whenever the test runner ends. Then the
 * program kills the remaining processes of the run, and removes the folders.
 */
import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** Returns the text that `read` returns, or nothing for a process that has ended or belongs to another user. */
function readable(read) {
  try {
    return read();
  } catch {
    return '';
  }
}

/**
 * Returns pids and command lines, without the pids in `except`.
 * @param {readonly string[]} folders
 * @param {readonly number[]} except
 * @returns {{ pid: number, command: string }[]}
 */
export function processesOf(folders, except) {
  const pids = readable(() => readdirSync('/proc').map(Number).filter(Number.isSafeInteger));
  return [...pids].flatMap((pid) => {
    const command = readable(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
    const facts = [
      command,
      readable(() => readFileSync(`/proc/${pid}/environ`, 'utf8')),
      readable(() => readlinkSync(`/proc/${pid}/cwd`)),
    ];
    if (except.includes(pid) || !folders.some((folder) => facts.some((text) => text.includes(folder))))
      return [];
    return [{ pid, command: command.replaceAll('\0', ' ').trim() }];
  });
}

/**
 * Kills these processes and waits until they have ended, at most 10 s.
 * @param {readonly string[]} folders
 * @param {readonly number[]} except
 */
export async function killProcessesOf(folders, except) {
  for (let tries = 0; tries < 200; tries++) {
    const found = processesOf(folders, except);
    if (found.length === 0) return;
    for (const { pid } of found) readable(() => process.kill(pid, 'SIGKILL'));
    await sleep(50);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folders = process.argv.slice(2);
  process.stdin.resume();
  process.stdin.once('close', async () => {
    await killProcessesOf(folders, [process.pid]);
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
}
