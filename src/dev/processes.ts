/** Facts about processes and ports: who runs, since when, under which command line, and how to end it. */
import { type ChildProcess, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const onLinux = process.platform === 'linux';

/** A server of this machine that belongs to us. */
export interface LocalServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Settles when the process has ended, with how: `exit code 1` or `signal SIGKILL`. */
  readonly exited: Promise<string>;
  /** Ends the server in order and waits for it. Harmless when it has ended already. */
  stop(): Promise<void>;
}

/** The command line of a process, or undefined when it does not run. A zombie has none and counts as ended. */
export function commandOf(pid: number): string | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  if (!onLinux) {
    const ps = spawnSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' });
    return ps.stdout?.trim() || undefined;
  }
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim() || undefined;
  } catch {
    return undefined;
  }
}

/** What tells two processes apart that had the same pid: the instant it started. Undefined when it does not run. */
export function startOf(pid: number): string | undefined {
  if (commandOf(pid) === undefined) return undefined;
  if (!onLinux)
    return spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).stdout?.trim();
  try {
    // The name in parentheses may hold spaces; the start time is the 20th field after it.
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return `${boot} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return undefined;
  }
}

/** Systems give outgoing connections ports from 32768 on (Linux) or 49152 on: below, a port that is free stays so. */
const [port_min, port_max] = [15_000, 32_767];

function tryPort(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

/** A port of the loopback address that was free a moment ago, and that no outgoing connection takes meanwhile. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 20; tries++) {
    const port = await tryPort(randomInt(port_min, port_max + 1)).catch(() => 0);
    if (port !== 0) return port;
  }
  return tryPort(0);
}

/** How a child ended, in words; also when it could not be started at all. */
export function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
    child.once('error', (error) => {
      if (child.pid === undefined) resolve(error.message);
    });
  });
}

/** Sends signals to a child, one after another, until it has ended: `[signal, milliseconds to wait after it]`. */
export async function endChild(
  child: ChildProcess,
  exited: Promise<string>,
  signals: readonly (readonly [NodeJS.Signals, number])[],
): Promise<void> {
  for (const [signal, patience] of signals) {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) break;
    child.kill(signal);
    const wait = new AbortController();
    const late = sleep(patience, true, { signal: wait.signal }).catch(() => true);
    if (await Promise.race([exited.then(() => false), late])) continue;
    wait.abort();
    return;
  }
  if (child.pid !== undefined) await exited;
}

/**
 * Ends what a killed run left behind: the process of this pid, but only if its command line shows that it is ours.
 * True when there was one.
 */
export async function endLeftover(
  pid: number,
  ours: (command: string) => boolean,
  signals: readonly (readonly [NodeJS.Signals, number])[],
): Promise<boolean> {
  const runs = () => {
    const command = commandOf(pid);
    return command !== undefined && ours(command);
  };
  if (!runs()) return false;
  for (const [signal, patience] of signals) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    for (const end = performance.now() + patience; performance.now() < end; await sleep(20)) {
      if (!runs()) return true;
    }
  }
  return true;
}
