/** A private Redis: loopback only, a password of its own, nothing evicted, every write in the append-only file. */
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
  /** Folder of its data, configuration, password and log; made when absent. */
  readonly dir: string;
  /** A free one is chosen without it. */
  readonly port?: number;
  /** When a write reaches the disk; 'always' before its answer, as the durability law asks. */
  readonly appendfsync?: 'always' | 'everysec' | 'no';
  /** False: it loads `dump.rdb` of the folder and keeps nothing. Default true. */
  readonly appendonly?: boolean;
  readonly log?: (line: string) => void;
  /** False: it shares our process group, and so a terminal's Ctrl-C. */
  readonly detached?: boolean;
  /** Gives up a start that is under way. */
  readonly signal?: AbortSignal;
}

const stopSignals = [
  ['SIGTERM', 10_000],
  ['SIGKILL', 2_000],
] as const;

/** A text as one argument of redis.conf. */
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
    // Otherwise the title replaces the command line, by which we know a leftover as ours.
    'set-proc-title no',
    'save ""',
    `appendonly ${appendonly ? 'yes' : 'no'}`,
    `appendfsync ${appendfsync}`,
    'maxmemory-policy noeviction',
    // Who reacted to one post within an hour may be a million: letting go of them must not hold up everybody.
    'lazyfree-lazy-expire yes',
    '',
  ].join('\n');
}

/** One exchange with the server: 'ready', or what keeps it from serving. */
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
 * Starts Redis on `dir` and waits until it has loaded its data and answers. What a killed run left on the same folder
 * is stopped first. Throws a Refusal that holds the end of its log when it does not start.
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
    // Another process may have taken the port since we looked.
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
      throw new Refusal('the start of Redis was given up');
    }
    if (ended !== undefined) {
      throw new Refusal(`Redis did not start (${ended}): ${logSince(logPath, logStart)}`);
    }
    if ((await ask(port, password)) === 'ready' && ended === undefined) break;
    await sleep(pause);
  }
  return { url: `redis://:${password}@127.0.0.1:${port}`, port, pid: child.pid ?? 0, exited, stop };
}
