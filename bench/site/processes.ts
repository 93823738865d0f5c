/** Processes of a run: where they run, what they cost, and programs that are started for one round. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The server under test has the first core for itself; load, Redis, Postgres and flusher share the second. */
export const serverCore = 0;
export const otherCore = 1;

const pinning =
  process.platform === 'linux' &&
  availableParallelism() > 1 &&
  spawnSync('taskset', ['--version'], { stdio: 'ignore' }).status === 0;

/** How the processes are placed, for the report. */
export const placement = pinning
  ? `server on core ${serverCore}; load, Redis, Postgres and flusher on core ${otherCore}`
  : 'not pinned: taskset or a second core is missing';

/** Binds a process, with its threads and what it will start, to one core, where that can be done. */
export function pin(pid: number, core: number): void {
  if (pinning) spawnSync('taskset', ['-a', '-p', '-c', String(core), String(pid)], { stdio: 'ignore' });
}

/** True when the program can be started. */
export function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;
}

let ticksPerSecond = 0;

/** CPU time that a process has used so far, all threads, user and system, in seconds. NaN where /proc is missing. */
export function cpuSeconds(pid: number): number {
  if (process.platform !== 'linux') return Number.NaN;
  ticksPerSecond ||= Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100;
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in parentheses may hold spaces; utime and stime are the 12th and 13th field after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Runs a program on the load's core to its end and returns what it wrote. Throws with its last words if it fails. */
export function runForOutput(program: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  const [file, ...rest] = [
    ...(pinning ? ['taskset', '-c', String(otherCore)] : []),
    program,
    ...args,
  ] as string[];
  return new Promise((resolve, reject) => {
    const child = spawn(file as string, rest, { stdio: ['ignore', 'pipe', 'pipe'], signal });
    let output = '';
    let complaint = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      complaint += chunk;
    });
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`${program} ended with ${code}: ${complaint.slice(-500)}`));
    });
  });
}
