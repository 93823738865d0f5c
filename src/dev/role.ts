/** Starts one role of the program as a child process and ends it again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { settings } from '../config/config.js';
import { limits } from '../limits.js';
import { endChild, exitOf } from './processes.js';
import { Refusal } from './refusal.js';
import type { RoleLog } from './role_log.js';
import type { Running } from './supervisor.js';

export interface RoleOptions {
  /** The compiled `main.js`. */
  readonly main: string;
  readonly role: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: RoleLog;
  /** Gives up a start that is under way. */
  readonly signal: AbortSignal;
}

const start_ms_max = 60_000;
/** How long a role may take to end: to drain, and `shutdown_ms_max` to finish what is in flight. */
function stopMsMax(env: RoleOptions['env']): number {
  const drain = settings.DRAIN_MS.safeParse(env.DRAIN_MS);
  return limits.shutdown_ms_max + (drain.success ? drain.data : 0);
}
const hurry_ms = 1_000;

/**
 * The channel between us closes when we die, however we die, and a role ends when it does. A process group of its own
 * keeps a terminal's Ctrl-C away: the order in which roles stop is ours to choose.
 */
/** What is in flight for some milliseconds outlives a small young generation and is copied at each collection: with 64 MB
 * instead of 16 a front spends half as much on it. */
export const node_flags = ['--enable-source-maps', '--max-semi-space-size=64'];

function spawnRole({ main, role, env, log }: RoleOptions): ChildProcess {
  log.reset();
  const child = spawn(process.execPath, [...node_flags, main, role], {
    env: env as NodeJS.ProcessEnv,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  if (child.stdout) log.follow(child.stdout);
  if (child.stderr) log.follow(child.stderr);
  // Sending to a child that has just died must not end us.
  child.on('error', () => {});
  return child;
}

async function stopRole(
  child: ChildProcess,
  exited: Promise<string>,
  msMax: number,
  hurry?: AbortSignal,
): Promise<void> {
  const gentle = endChild(child, exited, [
    ['SIGTERM', msMax],
    ['SIGKILL', 2_000],
  ]);
  const impatient = async () => {
    if (!hurry) return;
    if (!hurry.aborted)
      await new Promise((resolve) => hurry.addEventListener('abort', resolve, { once: true }));
    await sleep(hurry_ms, undefined, { ref: false });
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  };
  void impatient();
  await gentle;
}

function failure({ role, log }: RoleOptions, how: string): Refusal {
  const reason = log.lastSevere || 'it gave no reason';
  return new Refusal(`${role} did not start (${how}): ${reason} (log: ${log.path})`);
}

/** Resolves when the role has said `{type: 'ready'}`. Throws a Refusal with its last error when it ends before. */
export async function startRole(options: RoleOptions): Promise<Running> {
  const child = spawnRole(options);
  const exited = exitOf(child);
  const ready = new Promise<'ready'>((resolve) => {
    child.on('message', (message) => {
      if ((message as { type?: unknown } | null)?.type === 'ready') resolve('ready');
    });
  });
  const givenUp = new Promise<'given up'>((resolve) => {
    if (options.signal.aborted) resolve('given up');
    options.signal.addEventListener('abort', () => resolve('given up'), { once: true });
  });
  const timer = new AbortController();
  const late = sleep(start_ms_max, 'no sign of life', { signal: timer.signal }).catch(() => '');
  const outcome = await Promise.race([ready, exited, givenUp, late]);
  timer.abort();
  if (outcome !== 'ready') {
    await stopRole(child, exited, stopMsMax(options.env));
    // The pipes are read to their end before the last error is quoted.
    await sleep(20);
    throw failure(options, outcome);
  }
  const msMax = stopMsMax(options.env);
  return { pid: child.pid ?? 0, exited, stop: (hurry) => stopRole(child, exited, msMax, hurry) };
}

/** Runs a role that does one task and ends. Throws a Refusal with its last error unless it ends with code 0. */
export async function runRole(options: RoleOptions): Promise<void> {
  const child = spawnRole(options);
  const exited = exitOf(child);
  const giveUp = () => child.kill('SIGTERM');
  options.signal.addEventListener('abort', giveUp, { once: true });
  const how = await exited;
  options.signal.removeEventListener('abort', giveUp);
  if (how === 'exit code 0') return;
  await sleep(20);
  throw failure(options, how);
}
