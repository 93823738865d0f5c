/**
 * Runs a private Redis on loopback with its own password, without eviction, and with every write in the append-only
 * file.
 */
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { keptSecret, logSince, readIfThere, withLog, writeFileAtomic } from './files.js';
import { endChild, endLeftover, exitOf, freePort, type LocalServer } from './processes.js';
import { findRedis } from './redis_install.js';
import { Refusal } from './refusal.js';

export interface RedisOptions {
  /** Folder for data, configuration, password and log; created when absent. */
  readonly dir: string;
  /** A free port by default. */
  readonly port?: number;
  /** When a write reaches the disk. 'always' syncs before the answer, as the durability law requires. */
  readonly appendfsync?: 'always' | 'everysec' | 'no';
  /** False: loads `dump.rdb` from the folder and saves nothing. Default true. */
  readonly appendonly?: boolean;
  readonly log?: (line: string) => void;
  /** False: stays in our process group and gets the terminal's Ctrl-C. */
  readonly detached?: boolean;
  /** Cancels a start in progress. */
  readonly signal?: AbortSignal;
}

const stopSignals = [
  ['SIGTERM', 10_000],
  ['SIGKILL', 2_000],
] as const;

/** Quotes a text as one argument of redis.conf. */
const quoted = (text: string) => `"${text.replace(/[\\"]/g, '\\$&')}"`;

function configuration(
  dir: string,
  port: number,
  password: string,
  { appendfsync = 'always', appendonly = true }: RedisOptions,
): string {
  return [
    'bind 127.0.0.1',
    `port ${port}`,
    `requirepass ${password}`,
    `dir ${quoted(dir)}`,
    `pidfile ${quoted(join(dir, 'redis.pid'))}`,
    'daemonize no',
    // Otherwise Redis replaces its command line, which identifies a leftover process as ours.
    'set-proc-title no',
    'save ""',
    `appendonly ${appendonly ? 'yes' : 'no'}`,
    `appendfsync ${appendfsync}`,
    'maxmemory-policy noeviction',
    // The set of people who reacted to one post within an hour may have a million members. Freeing it must not block
    // other clients.
    'lazyfree-lazy-expire yes',
    '',
  ].join('\n');
}

/** Asks the server once: 'ready', or why it does not serve yet. */
function ask(port: number, password: string): Promise<string> {
  return new Promise((done) => {
    const socket = createConnection({ port, host: '127.0.0.1' });
    let heard = '';
    const end = (answer: string) => {
      socket.destroy();
      done(answer);
    };
    socket.setTimeout(1_000, () => end('no answer'));
    socket.once('error', (error) => end(error.message));
    socket.once('close', () => done('closed'));
    socket.on('data', (chunk) => {
      heard += chunk.toString('latin1');
      const lines = heard.split('\r\n');
      if (lines.length > 2) end(lines[1] === '+PONG' ? 'ready' : (lines[1] ?? ''));
    });
    socket.write(`AUTH ${password}\r\nPING\r\n`);
  });
}

/**
 * Starts Redis in `dir` and waits until it has loaded its data. First stops a server that a killed run left on the
 * folder. Throws a Refusal with the end of the log when the start fails.
 */
export async function startRedis(options: RedisOptions): Promise<LocalServer> {
  const executable = findRedis();
  if (!executable)
    throw new Refusal('redis-server is not installed; install Redis 7 or newer, or set REDIS_URL');
  const dir = resolve(options.dir);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const conf = join(dir, 'redis.conf');
  const leftover = Number(readIfThere(join(dir, 'redis.pid')));
  if (await endLeftover(leftover, (command) => command.includes(conf), stopSignals)) {
    options.log?.(`stopped a Redis (pid ${leftover}) that an earlier run left behind`);
  }
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    const server = await launch(executable, dir, port, options).catch((error: Error) => error);
    if (!(server instanceof Error)) return server;
    // Another process may have taken the port since we checked.
    const taken = /address already in use/i.test(server.message);
    if (options.port !== undefined || !taken || attempt === 3) throw server;
  }
}

async function launch(
  executable: string,
  dir: string,
  port: number,
  options: RedisOptions,
): Promise<LocalServer> {
  const password = keptSecret(join(dir, 'password'));
  const conf = join(dir, 'redis.conf');
  const logPath = join(dir, 'redis.log');
  writeFileAtomic(conf, configuration(dir, port, password, options));
  const { child, logStart } = withLog(logPath, (fd, start) => ({
    child: spawn(executable, [conf], {
      cwd: dir,
      detached: options.detached ?? true,
      stdio: ['ignore', fd, fd],
    }),
    logStart: start,
  }));
  const exited = exitOf(child);
  const stop = () => endChild(child, exited, stopSignals);
  let ended: string | undefined;
  exited.then((how) => {
    ended = how;
  });
  for (let pause = 5; ; pause = Math.min(pause * 1.5, 100)) {
    if (options.signal?.aborted) {
      await stop();
      throw new Refusal('the start of Redis was cancelled');
    }
    if (ended !== undefined) {
      throw new Refusal(`Redis did not start (${ended}): ${logSince(logPath, logStart)}`);
    }
    if ((await ask(port, password)) === 'ready' && ended === undefined) break;
    await sleep(pause);
  }
  return { url: `redis://:${password}@127.0.0.1:${port}`, port, pid: child.pid ?? 0, exited, stop };
}
