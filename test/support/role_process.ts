import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../src/dev/processes.js';
import { createFinder } from '../../src/leaks/finder.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const start_ms_max = 90_000;
/**
 * The maximum time in ms that a test waits for a role to stop. The role ends earlier by itself, so that the test sees
 * the exit code.
 */
const stop_ms_max = 35_000;
const log_chars_max = 200_000;

/** One role in one process. Every signal is sent only to that process, by its pid. */
export interface RoleProcess {
  readonly role: string;
  readonly pid: number;
  readonly process: ChildProcess;
  readonly alive: boolean;
  /** Returns the last 200,000 characters that the role's processes wrote to stdout and stderr. */
  log(): string;
  readonly leaked: readonly string[];
  /** Waits for the previous process to exit, starts a new process on the same port, and waits until it is ready. */
  start(): Promise<void>;
  /** Stops the process cleanly (SIGTERM) and waits. Resolves with `exit code 0` or the signal. */
  stop(): Promise<string>;
  kill(): Promise<void>;
  pause(): void;
  resume(): void;
}

export interface Front extends RoleProcess {
  readonly url: string;
  readonly port: number;
}

/** Creates one more process of a role. The caller must end it. */
export function createRole(role: string, env: () => Promise<Record<string, string>>): RoleProcess {
  let child: ChildProcess | undefined;
  let exited: Promise<string> = Promise.resolve('not started');
  let log = '';
  const finder = createFinder();
  const leaked: string[] = [];
  const keep = (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-log_chars_max);
    for (const { token } of finder.take(chunk)) leaked.push(token);
  };
  const present = () => {
    if (!child) throw new Error(`${role} was not started`);
    return child;
  };
  const alive = () => child !== undefined && child.exitCode === null && child.signalCode === null;

  async function spawnOnce(): Promise<string> {
    const started = spawn(process.execPath, [main, role], {
      env: await env(),
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    child = started;
    started.stdout?.on('data', keep);
    started.stderr?.on('data', keep);
    exited = new Promise((resolve) => {
      started.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
      started.once('error', (error) => resolve(error.message));
    });
    const ready = new Promise<string>((resolve) => {
      started.on('message', (message) => {
        if ((message as { type?: unknown } | null)?.type === 'ready') resolve('ready');
      });
    });
    let late: NodeJS.Timeout | undefined;
    const lateness = new Promise<string>((resolve) => {
      late = setTimeout(resolve, start_ms_max, 'no sign of life');
    });
    const outcome = await Promise.race([ready, exited, lateness]);
    clearTimeout(late);
    if (outcome !== 'ready') started.kill('SIGKILL');
    return outcome;
  }

  return {
    role,
    get pid() {
      return present().pid ?? 0;
    },
    get process() {
      return present();
    },
    get alive() {
      return alive();
    },
    log: () => log,
    leaked,
    async start() {
      if (alive()) throw new Error(`${role} runs`);
      const outcome = await spawnOnce();
      if (outcome !== 'ready') throw new Error(`${role} did not start (${outcome}):\n${log.slice(-4_000)}`);
    },
    async stop() {
      if (!alive()) return exited;
      const last = present();
      last.kill('SIGTERM');
      const hurry = setTimeout(() => last.kill('SIGKILL'), stop_ms_max);
      const how = await exited;
      clearTimeout(hurry);
      return how;
    },
    async kill() {
      if (alive()) present().kill('SIGKILL');
      await exited;
    },
    pause: () => void present().kill('SIGSTOP'),
    resume: () => void present().kill('SIGCONT'),
  };
}

export async function createFront(
  env: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
  kind: 'front' | 'all' = 'front',
): Promise<Front> {
  const port = await freePort();
  const role = createRole(kind, async () => ({ ...env, ...own, PORT: String(port) }));
  return Object.defineProperties(role, {
    port: { value: port, enumerable: true },
    url: { value: `http://127.0.0.1:${port}`, enumerable: true },
  }) as Front;
}

/** Starts a role in up to three attempts, because a start on a busy machine may take longer than one attempt waits. */
export async function startPatiently(role: RoleProcess): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await role.start();
    } catch (error) {
      if (tries === 3) throw error;
      await role.kill();
    }
  }
}
