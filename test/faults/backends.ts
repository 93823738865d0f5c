/** Provides a Redis and a PostgreSQL that a test may kill and start again, and proxies that lose or delay replies. */
import { spawnSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { startPostgres } from '../../src/dev/postgres.js';
import type { LocalServer } from '../../src/dev/processes.js';
import { startRedis } from '../../src/dev/redis.js';
import { memoryFolder, temporaryFolder } from '../support/servers.js';

export interface Restartable {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly dir: string;
  kill(): Promise<void>;
  halt(): Promise<void>;
  /** Starts the server on the same port and folder. Resolves when the server has loaded its data and answers. */
  start(): Promise<void>;
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

/** PostgreSQL serves each connection in a separate process. */
function signalAll(pid: number, signal: NodeJS.Signals): void {
  // Stops the parent process first, and continues it last. The parent can therefore not start a child process while
  // other child processes are stopped.
  const all = [pid, ...childrenOf(pid)];
  for (const one of signal === 'SIGSTOP' ? all : all.reverse()) process.kill(one, signal);
}

function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  return stdout.split('\n').flatMap((line) => {
    const [child, parent] = line.trim().split(/\s+/).map(Number);
    return parent === pid && child ? [child] : [];
  });
}

function restartable(dir: string, first: LocalServer, again: () => Promise<LocalServer>): Restartable {
  let server = first;
  return {
    url: first.url,
    port: first.port,
    dir,
    get pid() {
      return server.pid;
    },
    async kill() {
      process.kill(server.pid, 'SIGKILL');
      await server.exited;
    },
    halt: () => server.stop(),
    async start() {
      server = await again();
    },
    pause: () => signalAll(server.pid, 'SIGSTOP'),
    resume: () => signalAll(server.pid, 'SIGCONT'),
    async stop() {
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Starts a Redis that writes to disk before it answers. With `everysec` it writes to disk once a second. */
export async function durableRedis(
  dir = temporaryFolder(),
  appendfsync: 'always' | 'everysec' = 'always',
): Promise<Restartable> {
  const options = { dir: join(dir, 'redis'), appendfsync, detached: false } as const;
  const first = await startRedis(options);
  return restartable(dir, first, () => startRedis({ ...options, port: first.port }));
}

export async function ownPostgres(dir = memoryFolder()): Promise<Restartable> {
  const options = { dir: join(dir, 'postgres'), durable: false, detached: false } as const;
  const first = await startPostgres(options);
  return restartable(dir, first, () => startPostgres({ ...options, port: first.port }));
}

export interface LosingProxy {
  readonly url: string;
  /** The share of script calls to Redis for which the proxy cuts the connection instead of returning the reply. */
  chance: number;
  readonly cuts: number;
  close(): Promise<void>;
}

/**
 * A proxy between a front and Redis. The proxy cuts the connection after Redis ran the command and before the front
 * gets the reply. The front then cannot know whether its calls were applied.
 */
export async function losingProxy(target: string): Promise<LosingProxy> {
  const { port } = new URL(target);
  const sockets = new Set<Socket>();
  let cuts = 0;
  const proxy = { chance: 0 };
  const server = createServer((near) => {
    const far = connect(Number(port), '127.0.0.1');
    let doomed = false;
    const end = () => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', end);
      socket.on('close', () => {
        sockets.delete(socket);
        end();
      });
    }
    near.on('data', (chunk) => {
      if (!doomed && chunk.includes('evalsha') && Math.random() < proxy.chance) doomed = true;
      far.write(chunk);
    });
    far.on('data', (chunk) => {
      if (!doomed) return near.write(chunk);
      cuts++;
      end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String((server.address() as { port: number }).port);
  return Object.defineProperties(proxy, {
    url: { value: url.href.replace(/\/$/, '') },
    cuts: { get: () => cuts },
    close: {
      value: () => {
        for (const socket of sockets) socket.destroy();
        return new Promise<void>((resolve) => server.close(() => resolve()));
      },
    },
  }) as unknown as LosingProxy;
}

export interface HoldingProxy {
  /** The address of the target, with the port of the proxy. */
  readonly url: string;
  /**
   * Resolves when the front has sent the next command that contains all of these texts. Until `release`, the proxy
   * holds back the reply to this command and all later data.
   */
  holdAfter(...texts: readonly string[]): Promise<void>;
  /**
   * Sends the data that was held back. Discards held pub/sub messages, because Redis does not guarantee their delivery.
   */
  release(): void;
  close(): Promise<void>;
}

/** A proxy between a front and Redis that delivers replies late. */
export async function holdingProxy(target: string): Promise<HoldingProxy> {
  const { port } = new URL(target);
  const sockets = new Set<Socket>();
  const kept: Array<() => void> = [];
  let awaited: readonly string[] = [];
  let begin = () => {};
  let isHolding = false;
  const server = createServer((near) => {
    const far = connect(Number(port), '127.0.0.1');
    let isSubscriber = false;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      const end = () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      };
      socket.on('error', end).on('close', end);
    }
    near.on('data', (chunk) => {
      if (/subscribe/i.test(chunk.toString('latin1'))) isSubscriber = true;
      if (awaited.length > 0 && awaited.every((text) => chunk.includes(text))) {
        awaited = [];
        isHolding = true;
        begin();
      }
      far.write(chunk);
    });
    far.on('data', (chunk) => {
      if (!isHolding) near.write(chunk);
      else if (!isSubscriber) kept.push(() => near.write(chunk));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.href.replace(/\/$/, ''),
    holdAfter(...texts) {
      awaited = texts;
      return new Promise((resolve) => {
        begin = resolve;
      });
    },
    release() {
      isHolding = false;
      for (const send of kept.splice(0)) send();
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
