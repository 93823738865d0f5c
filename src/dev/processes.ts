/** Ends processes, finds free ports, and reads the start time and command line of a process. */
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
  /** Resolves when the process has ended, with the reason, for example `exit code 1` or `signal SIGKILL`. */
  readonly exited: Promise<string>;
  /** Shuts the server down and waits until it has ended. Does nothing if it has already ended. */
  stop(): Promise<void>;
}

/**
 * Returns the command line of a process, or undefined if no such process runs. A zombie has no command line and counts
 * as ended.
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
 * Returns the start time of a process, or undefined if no such process runs. The start time distinguishes processes
 * that had the same pid one after another.
 */
export function startOf(pid: number): string | undefined {
  if (commandOf(pid) === undefined) return undefined;
  if (!onLinux)
    return spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).stdout?.trim();
  try {
    // The process name is in parentheses and may contain spaces. The start time is the 20th field after it.
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return `${boot} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return undefined;
  }
}

/**
 * The range of ports to choose from. Operating systems take ports for outgoing connections only from 32768 (Linux) or
 * 49152 upwards.
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

/** How long a server may take to listen on the port it was given, in ms. */
const reserve_ms = 30_000;

/**
 * Reserves a port, so that other processes that look for a free port skip it. The lock is a bound UDP socket with the
 * same port number, because no server here uses UDP. Returns false if another process has reserved the port.
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

/**
 * The port that the next search tries first. The first search begins at a random port. Each later search continues
 * after the last port that was tried, because the server for that port may not listen yet.
 */
let nextPort = randomInt(port_min, port_max + 1);

/**
 * Returns a free loopback port that is not used for outgoing connections. No process gets the same port from this
 * function again within `reserve_ms`.
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

/** The signals that end a process, in this order. The number is how long to wait after the signal, in ms. */
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
 * Spawns a server and waits until it accepts requests. Throws a Refusal if the start is cancelled. If the server ends
 * before it accepts requests, throws a Refusal that contains the end of its log.
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
 * Ends a leftover server, which still runs although the process that started it was killed. Ends the process with this
 * pid only if `ours` accepts its command line. Returns whether there was such a process.
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
