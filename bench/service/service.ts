/** Runs a private service for one benchmark run: Redis, Postgres, one front and one flusher. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { settings } from '../../src/config/config.js';
import { startPostgres } from '../../src/dev/postgres.js';
import { endChild, exitOf, freePort } from '../../src/dev/processes.js';
import { startRedis } from '../../src/dev/redis.js';
import { ensureRedis } from '../../src/dev/redis_install.js';
import { node_flags, runRole, startRole } from '../../src/dev/role.js';
import { RoleLog } from '../../src/dev/role_log.js';
import { createSecrets, type Secrets } from '../../src/store/core/secrets.js';
import type { FloorSetup, FloorTask } from '../floors/floor.js';
import { otherCore, pin, pinTree, serverCore, unpin } from './processes.js';

export interface Target {
  readonly baseUrl: string;
  readonly pid: number;
}

export interface Service {
  readonly front: Target;
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly postgresVersion: string;
  readonly adminToken: string;
  readonly secrets: Secrets;
  readonly partitions: number;
  /** The folder of all files of the run. It is removed at the end. */
  readonly dir: string;
  readonly signal: AbortSignal;
  /** The process ids of all processes except the fronts. */
  readonly parts: {
    readonly redis: number;
    readonly flush: number;
    readonly postgres: number;
    /** The process ids of the additional databases. The flushed data are divided among all databases. */
    readonly databases: readonly number[];
  };
  /**
   * Lets every process of the run and of `others` use every core. For measurements in which all processes share the
   * cores.
   */
  unpin(others?: ReadonlyArray<{ readonly pid: number }>): void;
  /** Pins every process to its original core again. */
  repin(): void;
  startFront(settings?: Readonly<Record<string, string>>): Promise<Target & { stop(): Promise<void> }>;
  startFloor(setup: FloorSetup): Promise<Target>;
  /** Starts another program of the bench, sends it its task, and waits for its first message. */
  startProgram<Word>(name: string, task: unknown, core: number): Promise<Program<Word>>;
  startWorker(): Promise<{ readonly pid: number; stop(): Promise<void> }>;
  /** Starts or stops a CPU profile of the front, of a worker or of the flusher. Does nothing when profiles are off. */
  profile(pid: number): void;
  stop(): Promise<void>;
}

export interface Program<Word = unknown> {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly first: Word;
  stop(): Promise<void>;
}

export interface ServiceOptions {
  readonly partitions: number;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
  /** The folder for CPU profiles of the front. If undefined, no profiles are taken. */
  readonly profile: string | undefined;
  /** The number of additional databases, 0 by default. The flushed data are divided among all databases. */
  readonly databases?: number;
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * The limit of entries in the journal. It is so high that no run reaches it: a run must measure the flusher's lag, not
 * fail.
 */
const journal_high_water = 10_000_000;
/** The path of the built program. */
const main = fileURLToPath(new URL('../../main.js', import.meta.url));

const stopSignals = [
  ['SIGTERM', 2_000],
  ['SIGKILL', 2_000],
] as const;

async function startProgram<Word>(
  name: string,
  task: unknown,
  { core, env, stops }: { core: number; env: NodeJS.ProcessEnv; stops: Array<() => Promise<void>> },
): Promise<Program<Word>> {
  const file = fileURLToPath(new URL(`../${name}.js`, import.meta.url));
  const child = spawn(process.execPath, [...node_flags, file], {
    env,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = exitOf(child);
  const stop = () => endChild(child, exited, stopSignals);
  stops.push(stop);
  const spoke = new Promise<{ word: Word }>((resolve) => {
    child.once('message', (word) => resolve({ word: word as Word }));
  });
  pin(child.pid as number, core);
  child.send(task as object);
  const outcome = await Promise.race([spoke, exited]);
  if (typeof outcome === 'string') throw new Error(`${name} did not start`);
  return { child, pid: child.pid as number, first: outcome.word, stop };
}

/** Removes all settings of Petrel from the environment, so that a run uses only the settings of the bench. */
const withoutSettings = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !Object.hasOwn(settings, name)));

async function together<T extends readonly unknown[]>(
  starts: { readonly [K in keyof T]: Promise<T[K]> },
  started: (each: T[number]) => void,
): Promise<T> {
  const ends = await Promise.allSettled(starts as readonly Promise<T[number]>[]);
  for (const end of ends) if (end.status === 'fulfilled') started(end.value);
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return ends.map((end) => (end as PromiseFulfilledResult<T[number]>).value) as unknown as T;
}

/** Starts all processes of the service. If one of them fails to start, stops the others. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { say, signal } = options;
  const dir = mkdtempSync(join(tmpdir(), 'petrel-bench-'));
  // Lets other users enter the folder, because Postgres may run as another user.
  chmodSync(dir, 0o711);
  const stops: Array<() => Promise<void>> = [() => rm(dir, { recursive: true, force: true })];
  const stop = async () => {
    for (let next = stops.pop(); next; next = stops.pop()) await next();
  };
  try {
    await ensureRedis(say);
    say('starting Redis and PostgreSQL');
    const [redis, postgres] = await together(
      [
        startRedis({ dir: join(dir, 'redis'), appendfsync: 'always', signal }),
        startPostgres({ dir: join(dir, 'postgres'), signal }),
      ],
      (server) => {
        stops.push(server.stop);
        pin(server.pid, otherCore);
      },
    );

    const databases = await together(
      Array.from({ length: options.databases ?? 0 }, (_, i) =>
        startPostgres({ dir: join(dir, `shard_${i + 1}`), signal }),
      ),
      (server) => {
        stops.push(server.stop);
        pin(server.pid, otherCore);
      },
    );

    const adminToken = randomBytes(24).toString('hex');
    const [pepper, key] = [randomBytes(32).toString('hex'), randomBytes(32)];
    const ports = [await freePort()];
    const env = {
      ...withoutSettings(process.env),
      PETREL_HOME: join(dir, 'home'),
      HOST: '127.0.0.1',
      PORT: String(ports[0]),
      SHARE_PORT: '0',
      DRAIN_MS: '0',
      REDIS_URL: redis.url,
      DATABASE_URL: postgres.url,
      ...(databases.length > 0
        ? { DATABASE_SHARDS: databases.map(({ url }, i) => `${i + 1}=${url}`).join(',') }
        : {}),
      PARTITIONS: String(options.partitions),
      ADMIN_TOKEN: adminToken,
      TOKEN_PEPPER: pepper,
      TOKEN_KEYS: `k1:${key.toString('base64')}`,
      JOURNAL_HIGH_WATER: String(journal_high_water),
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      ...{ RATE_PER_BOT: '0', RATE_PER_PERSON: '0', RATE_PER_CHAT: '0', RATE_PER_READER: '0' },
      ...options.settings,
    };
    const profiled = (name: string) =>
      options.profile === undefined
        ? {}
        : {
            NODE_OPTIONS: `--import=${pathToFileURL(fileURLToPath(new URL('profiler.js', import.meta.url)))}`,
            PETREL_BENCH_PROFILE: join(options.profile, name),
          };
    const role = (name: string, extra = {}, log = name) => ({
      main,
      role: name,
      env: { ...env, ...extra },
      log: new RoleLog(log, join(dir, `${log}.log`), say),
      signal,
    });
    say('starting the service');
    await runRole(role('migrate'));
    const start = async (name: string, core: number, extra = {}, log = name) => {
      const running = await startRole(role(name, extra, log));
      stops.push(() => running.stop());
      pin(running.pid, core);
      return running;
    };
    const [flush, front] = await Promise.all([
      start('flush', otherCore, profiled('flush')),
      start('front', serverCore, profiled('front')),
    ]);
    return {
      front: { baseUrl: `http://127.0.0.1:${ports[0]}`, pid: front.pid },
      parts: {
        ...{ redis: redis.pid, flush: flush.pid, postgres: postgres.pid },
        databases: databases.map(({ pid }) => pid),
      },
      unpin(others = []) {
        for (const { pid } of [redis, postgres, ...databases, flush, front, ...others]) unpin(pid);
      },
      repin() {
        for (const { pid } of [redis, postgres, ...databases, flush]) pinTree(pid, otherCore);
        pinTree(front.pid, serverCore);
      },
      async startFront(more = {}) {
        const port = await freePort();
        const name = `front${ports.push(port)}`;
        const own = { PORT: String(port), ...profiled(name), ...more };
        const { pid, stop } = await start('front', serverCore, own, name);
        return { baseUrl: `http://127.0.0.1:${port}`, pid, stop };
      },
      redisUrl: redis.url,
      databaseUrl: postgres.url,
      postgresVersion: readFileSync(join(dir, 'postgres', 'data', 'PG_VERSION'), 'utf8').trim(),
      adminToken,
      secrets: createSecrets([pepper], [{ id: 'k1', key }]),
      partitions: options.partitions,
      dir,
      signal,
      async startFloor(setup) {
        const task: FloorTask = { setup, redisUrl: redis.url, partitions: options.partitions };
        const floor = await startProgram<{ port: number }>('floors/floor', task, {
          core: serverCore,
          env,
          stops,
        });
        if (floor.first.port === 0) throw new Error('a floor did not start');
        return { baseUrl: `http://127.0.0.1:${floor.first.port}`, pid: floor.pid };
      },
      startProgram: (name, task, core) => startProgram(name, task, { core, env, stops }),
      startWorker: () => start('deliver', serverCore, profiled('deliver')),
      profile: (pid) => {
        if (options.profile !== undefined) process.kill(pid, 'SIGUSR2');
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
