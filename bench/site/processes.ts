/** Processes of a run: where they run, what they cost, and programs that are started for one round. */
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The server under test has the first core for itself; load, Redis, Postgres and flusher share the second. */
export const serverCore = 0;
export const otherCore = 1;

const onLinux = process.platform === 'linux';

const pinning =
  onLinux &&
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

/** The same for a process and all that it has started already. */
export function pinTree(pid: number, core: number): void {
  if (pinning) for (const each of treeOf(pid)) pin(each, core);
}

/** Lets a process run on every core again. */
export function unpin(pid: number): void {
  if (!pinning) return;
  const cores = `0-${availableParallelism() - 1}`;
  for (const each of treeOf(pid))
    spawnSync('taskset', ['-a', '-p', '-c', cores, String(each)], { stdio: 'ignore' });
}

/** True when the program can be started. */
export function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;
}

let ticksPerSecond = 0;
const seconds = (ticks: number) => {
  ticksPerSecond ||= Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100;
  return ticks / ticksPerSecond;
};

/** The fields of /proc/<pid>/stat behind the name, which may hold spaces; the state is the first. Empty when it has ended. */
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

/** CPU time that a process has used so far, all threads, user and system, in seconds. NaN where /proc is missing. */
export const cpuSeconds = (pid: number): number => (onLinux ? seconds(own(statOf(pid))) : Number.NaN);

/** The process and all that it started and that runs. */
function treeOf(pid: number): number[] {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), Number(statOf(Number(name))[1])] as const);
  const tree = [pid];
  for (let i = 0; i < tree.length; i++)
    for (const [child, parent] of parents) if (parent === tree[i]) tree.push(child);
  return tree;
}

/** The same of a process and all its children, those that have ended too. */
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

/** The same of all children of this process that have ended. */
export const cpuSecondsOfEnded = (): number => (onLinux ? seconds(ofEnded(statOf('self'))) : Number.NaN);

/** CPU time that all processes of the machine have used so far, in seconds. NaN where /proc is missing. */
export function cpuSecondsOfMachine(): number {
  if (!onLinux) return Number.NaN;
  // user, nice, system, idle, waiting for disks, interrupts of two kinds, and what the host took.
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = (
    /^cpu +([\d ]+)/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? ''
  )
    .split(' ')
    .map(Number);
  return seconds(user + nice + system + irq + softirq + stolen);
}

/** Bytes of memory that a process and its children have for themselves, without what they share with files. */
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

/** Runs a program on the load's core to its end and returns what it wrote. Throws with its last words if it fails. */
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
      else reject(new Error(`${program} ended with ${code}: ${complaint.slice(-500)}`));
    });
  });
}
