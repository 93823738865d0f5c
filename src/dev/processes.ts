/**
 * Facts about processes and ports: whether a process runs, since when and with which command line; and ways to end it.
 */
import { type ChildProcess, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const onLinux = process.platform === 'linux';

/** A server process of ours on this machine. */
export interface LocalServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Settles when the process has ended, with the reason: `exit code 1` or `signal SIGKILL`. */
  readonly exited: Promise<string>;
  /** Shuts the server down and waits. Does nothing if it has already ended. */
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

/** The start time of a process, which distinguishes processes that reuse a pid. Undefined when it does not run. */
export function startOf(pid: number): string | undefined {
  if (commandOf(pid) === undefined) return undefined;
  if (!onLinux)
    return spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).stdout?.trim();
  try {
    // The name in parentheses may contain spaces. The start time is the 20th field after it.
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return `${boot} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return undefined;
  }
}

/** Systems give outgoing connections ports from 32768 (Linux) or 49152 on. A free port below that stays free. */
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

/** A loopback port that was free a moment ago and is not used for outgoing connections. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 20; tries++) {
    const port = await tryPort(randomInt(port_min, port_max + 1)).catch(() => 0);
    if (port !== 0) return port;
  }
  return tryPort(0);
}

/** The reason a child ended, in words; also when it could not be started. */
export function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
    child.once('error', (error) => {
      if (child.pid === undefined) resolve(error.message);
    });
  });
}

/** Sends signals to a child one after another until it ends: `[signal, milliseconds to wait after it]`. */
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
 * Ends the process that a killed run left under this pid, but only if its command line shows that it is ours. True when
 * there was one.
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
