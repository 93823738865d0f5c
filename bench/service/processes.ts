/**
 * Manages the processes of a benchmark run: pins them to cores, measures their CPU time, and starts programs that run
 * for a single round.
 */
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The measured server has core 0 to itself. The load generator, Redis, Postgres and the flusher share core 1. */
export const serverCore = 0;
export const otherCore = 1;

const onLinux = process.platform === 'linux';

const pinning =
  onLinux &&
  availableParallelism() > 1 &&
  spawnSync('taskset', ['--version'], { stdio: 'ignore' }).status === 0;

/** Describes for the report how the processes are placed on cores. */
export const placement = pinning
  ? `server on core ${serverCore}; load, Redis, Postgres and flusher on core ${otherCore}`
  : 'not pinned: taskset or a second core is missing';

export function pin(pid: number, core: number): void {
  if (pinning) spawnSync('taskset', ['-a', '-p', '-c', String(core), String(pid)], { stdio: 'ignore' });
}

export function pinTree(pid: number, core: number): void {
  if (pinning) for (const each of treeOf(pid)) pin(each, core);
}

export function unpin(pid: number): void {
  if (!pinning) return;
  const cores = `0-${availableParallelism() - 1}`;
  for (const each of treeOf(pid))
    spawnSync('taskset', ['-a', '-p', '-c', cores, String(each)], { stdio: 'ignore' });
}

export function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;
}

let ticksPerSecond = 0;
const seconds = (ticks: number) => {
  ticksPerSecond ||= Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100;
  return ticks / ticksPerSecond;
};

/**
 * Returns the fields of /proc/<pid>/stat that follow the process name, which may contain spaces. The first field is the
 * state of the process. Empty when the process has ended.
 */
function statOf(pid: number | 'self'): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
const own = (stat: readonly string[]) => Number(stat[11] ?? 0) + Number(stat[12] ?? 0);
const ofEnded = (stat: readonly string[]) => Number(stat[13] ?? 0) + Number(stat[14] ?? 0);

/** The CPU time of a process since its start in seconds, over all threads, user and system. NaN without /proc. */
export const cpuSeconds = (pid: number): number => (onLinux ? seconds(own(statOf(pid))) : Number.NaN);

function treeOf(pid: number): number[] {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), Number(statOf(Number(name))[1])] as const);
  const tree = [pid];
  for (let i = 0; i < tree.length; i++)
    for (const [child, parent] of parents) if (parent === tree[i]) tree.push(child);
  return tree;
}

/** The CPU time of a process and all its children, including ended children, in seconds. */
export function cpuSecondsOfTree(pid: number): number {
  if (!onLinux) return Number.NaN;
  return seconds(
    sum(
      treeOf(pid)
        .map(statOf)
        .map((stat) => own(stat) + ofEnded(stat)),
    ),
  );
}

/** The CPU time of all ended children of this process, in seconds. */
export const cpuSecondsOfEnded = (): number => (onLinux ? seconds(ofEnded(statOf('self'))) : Number.NaN);

/** The CPU time that all processes of the machine have used, in seconds. NaN without /proc. */
export function cpuSecondsOfMachine(): number {
  if (!onLinux) return Number.NaN;
  // The columns of /proc/stat are user, nice, system, idle, iowait, irq, softirq and steal.
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = (
    /^cpu +([\d ]+)/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? ''
  )
    .split(' ')
    .map(Number);
  return seconds(user + nice + system + irq + softirq + stolen);
}

/** The private memory of a process and its children in bytes, without memory-mapped files. */
export function residentBytes(pid: number): number {
  if (!onLinux) return Number.NaN;
  const kilobytes = treeOf(pid).map((each) => {
    try {
      return Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${each}/status`, 'utf8'))?.[1] ?? 0);
    } catch {
      return 0;
    }
  });
  return sum(kilobytes) * 1_024;
}

/**
 * Runs a program on the load generator's core and returns its output. If the program fails, throws an error with the
 * end of its stderr.
 */
export function runForOutput(
  program: string,
  args: readonly string[],
  signal: AbortSignal,
  anyCore = false,
): Promise<string> {
  const [file, ...rest] = [
    ...(pinning && !anyCore ? ['taskset', '-c', String(otherCore)] : []),
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
      else reject(new Error(`${program} exited with ${code}: ${complaint.slice(-500)}`));
    });
  });
}
