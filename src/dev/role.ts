/** Starts one role of the program as a child process and ends it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { settings } from '../config/config.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { endChild, exitOf } from './processes.js';
import { Refusal } from './refusal.js';
import type { RoleLog } from './role_log.js';
import type { Running } from './supervisor.js';

export interface RoleOptions {
  readonly main: string;
  readonly role: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: RoleLog;
  readonly signal: AbortSignal;
}

const start_ms_max = 60_000;
/** Returns how long a role may take to shut down, in ms. A role that works correctly ends within this time. */
function stopMsMax(env: RoleOptions['env']): number {
  const drain = settings.DRAIN_MS.safeParse(env.DRAIN_MS);
  return (drain.success ? drain.data : 0) + limits.roles_stop_ms_max + limits.backends_close_ms_max;
}
const hurry_ms = 1_000;

/**
 * Enlarges V8's young generation. Most objects of a front live for a few milliseconds, and each collection copies the
 * objects that are still alive. With 64 MB instead of 16 MB, a front spends half as much time on these copies.
 */
export const node_flags = ['--enable-source-maps', '--max-semi-space-size=64'];

/**
 * Starts a role as a child process. The role exits when the IPC channel closes, and thus also when this process is
 * killed. It has its own process group, so that Ctrl-C in the terminal does not reach it and this process controls the
 * order of shutdown.
 */
function spawnRole({ main, role, env, log }: RoleOptions): ChildProcess {
  log.reset();
  const child = spawn(process.execPath, [...node_flags, main, role], {
    env: env as NodeJS.ProcessEnv,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  if (child.stdout) log.follow(child.stdout);
  if (child.stderr) log.follow(child.stderr);
  // Ignores the error that occurs when a message is sent to a child that has just ended. It would otherwise end this
  // process.
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
  const reason = log.lastSevere || 'no reason given';
  return new Refusal(`${role} did not start (${how}): ${reason} (log: ${log.path})`);
}

/** Resolves when the role has sent `{type: 'ready'}`. If the role ends first, throws a Refusal with its last error. */
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
  const late = sleep(start_ms_max, 'no answer', { signal: timer.signal }).catch(() => '');
  const outcome = await Promise.race([ready, exited, givenUp, late]);
  timer.abort();
  if (outcome !== 'ready') {
    await stopRole(child, exited, stopMsMax(options.env));
    // Waits until the pipes have been read to their end, because they may still contain the last error.
    await sleep(20);
    throw failure(options, outcome);
  }
  const msMax = stopMsMax(options.env);
  return { pid: child.pid ?? 0, exited, stop: (hurry) => stopRole(child, exited, msMax, hurry) };
}

/**
 * Runs a role that does one task and then exits. Unless the exit code is 0, throws a Refusal with the role's last
 * error.
 */
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
