/**
 * Runs a private Redis server on loopback. It has a password of its own, never evicts keys, and appends every write to
 * its append-only file.
 */
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join, resolve } from 'node:path';
import { keptSecret, readIfThere, writeFileAtomic } from './files.js';
import { endLeftover, freePort, type LocalServer, launchServer } from './processes.js';
import { findRedis } from './redis_install.js';
import { Refusal } from './refusal.js';

export interface RedisOptions {
  readonly dir: string;
  readonly port?: number;
  /**
   * When Redis syncs its append-only file to disk. With 'always', it syncs before it answers, so that no confirmed
   * write is lost.
   */
  readonly appendfsync?: 'always' | 'everysec' | 'no';
  /** If false, the server loads `dump.rdb` from the folder and saves nothing. The default is true. */
  readonly appendonly?: boolean;
  readonly log?: (line: string) => void;
  /** If false, the server stays in our process group and also receives the terminal's Ctrl-C. */
  readonly detached?: boolean;
  readonly signal?: AbortSignal;
}

const stopSignals = [
  ['SIGTERM', 10_000],
  ['SIGKILL', 2_000],
] as const;

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
    // Keeps Redis from replacing its command line, because a leftover server is recognised by its command line.
    'set-proc-title no',
    'save ""',
    `appendonly ${appendonly ? 'yes' : 'no'}`,
    `appendfsync ${appendfsync}`,
    'maxmemory-policy noeviction',
    // Frees expired keys in the background, so that a large key does not block other clients. For example, the set of
    // people who reacted to a post within an hour may have a million members.
    'lazyfree-lazy-expire yes',
    '',
  ].join('\n');
}

function isReady(port: number, password: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = createConnection({ port, host: '127.0.0.1' });
    let received = '';
    const end = (ready: boolean) => {
      socket.destroy();
      done(ready);
    };
    socket.setTimeout(1_000, () => end(false));
    socket.once('error', () => end(false));
    socket.once('close', () => done(false));
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      const lines = received.split('\r\n');
      if (lines.length > 2) end(lines[1] === '+PONG');
    });
    socket.write(`AUTH ${password}\r\nPING\r\n`);
  });
}

/**
 * Starts Redis in `dir` and waits until it has loaded its data. First stops a leftover Redis, which still runs there
 * although the process that started it was killed. If the start fails, throws a Refusal that contains the end of the
 * log.
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
    // Tries another port if another process has meanwhile taken the port that `freePort` found.
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
  writeFileAtomic(conf, configuration(dir, port, password, options));
  const server = await launchServer({
    name: 'Redis',
    logPath: join(dir, 'redis.log'),
    spawn: (log) =>
      spawn(executable, [conf], {
        cwd: dir,
        detached: options.detached ?? true,
        stdio: ['ignore', log, log],
      }),
    isReady: () => isReady(port, password),
    stopSignals,
    signal: options.signal,
  });
  return { ...server, url: `redis://:${password}@127.0.0.1:${port}`, port };
}
