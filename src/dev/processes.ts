/** Ends processes and finds free ports. Also reads the start time and command line of a process. */
import { type ChildProcess, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { logSince, withLog } from './files.js';
import { Refusal } from './refusal.js';

const onLinux = process.platform === 'linux';

export interface LocalServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Resolves when the process has ended, with the reason: `exit code 1` or `signal SIGKILL`. */
  readonly exited: Promise<string>;
  /** Shuts the server down and waits until it has ended. Does nothing if the server has already ended. */
  stop(): Promise<void>;
}

/**
 * Returns the command line of a process, or undefined if the process does not run. A zombie has no command line and
 * counts as ended.
 */
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

/**
 * Returns the start time of a process, or undefined if it does not run. The start time distinguishes processes that had
 * the same pid.
 */
export function startOf(pid: number): string | undefined {
  if (commandOf(pid) === undefined) return undefined;
  if (!onLinux)
    return spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).stdout?.trim();
  try {
    // The process name is in parentheses and may contain spaces. The start time is the 20th field after the name.
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return `${boot} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return undefined;
  }
}

/**
 * Operating systems use ports from 32768 (Linux) or 49152 for outgoing connections. A free port below this range stays
 * free.
 */
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

/** How long a server may take to start on its port. */
const reserve_ms = 30_000;

/**
 * Reserves a port against other processes that look for a free port. As a lock, binds the UDP port of the same number.
 * No server uses this UDP port. Returns false if another process has reserved the port.
 */
function reservePort(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  return new Promise((resolve) => {
    socket.once('error', () => socket.close(() => resolve(false)));
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => {
      socket.unref();
      setTimeout(() => socket.close(), reserve_ms).unref();
      resolve(true);
    });
  });
}

/** Counts up from a random port, so that no port is returned twice before it is in use. */
let nextPort = randomInt(port_min, port_max + 1);

/**
 * Returns a loopback port that is free and not used for outgoing connections. No other process gets the same port from
 * this function within `reserve_ms`.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 20; tries++) {
    const port = nextPort;
    nextPort = port === port_max ? port_min : port + 1;
    if ((await reservePort(port)) && (await tryPort(port).catch(() => 0)) !== 0) return port;
  }
  return tryPort(0);
}

export function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
    child.once('error', (error) => {
      if (child.pid === undefined) resolve(error.message);
    });
  });
}

/** The signals that end a process, in order. Each entry consists of a signal and of the ms to wait after the signal. */
type Signals = readonly (readonly [NodeJS.Signals, number])[];

export async function endChild(
  child: ChildProcess,
  exited: Promise<string>,
  signals: Signals,
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
 * Spawns a server and waits until it accepts requests. Throws a Refusal with the end of the server's log if the server
 * ends earlier. Also throws a Refusal if the start is cancelled.
 */
export async function launchServer(options: {
  readonly name: string;
  readonly logPath: string;
  readonly spawn: (log: number) => ChildProcess;
  readonly isReady: (pid: number) => boolean | Promise<boolean>;
  readonly stopSignals: Signals;
  readonly signal: AbortSignal | undefined;
}): Promise<Omit<LocalServer, 'url' | 'port'>> {
  const { name, logPath, isReady, signal } = options;
  const { child, start } = withLog(logPath, (log, start) => ({ child: options.spawn(log), start }));
  const exited = exitOf(child);
  const stop = () => endChild(child, exited, options.stopSignals);
  const pid = child.pid ?? 0;
  let ended: string | undefined;
  exited.then((how) => {
    ended = how;
  });
  for (let pause = 5; ; pause = Math.min(pause * 1.5, 25)) {
    const ready = await isReady(pid);
    if (signal?.aborted) {
      await stop();
      throw new Refusal(`the start of ${name} was cancelled`);
    }
    if (ended !== undefined)
      throw new Refusal(`${name} did not start (${ended}): ${logSince(logPath, start)}`);
    if (ready) return { pid, exited, stop };
    await sleep(pause);
  }
}

/**
 * Ends the process with this pid if its command line shows that the process is ours. Such a process is left running
 * when its parent is killed. Returns whether there was such a process.
 */
export async function endLeftover(
  pid: number,
  ours: (command: string) => boolean,
  signals: Signals,
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
