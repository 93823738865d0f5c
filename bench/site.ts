/** A service of its own for one run: Redis and Postgres as an installation has them, one front, one flusher. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { settings } from '../src/config.js';
import { startPostgres } from '../src/local/postgres.js';
import { endChild, exitOf, freePort } from '../src/local/processes.js';
import { startRedis } from '../src/local/redis.js';
import { ensureRedis } from '../src/local/redis_install.js';
import { node_flags, runRole, startRole } from '../src/local/role.js';
import { RoleLog } from '../src/local/role_log.js';
import type { FloorSetup, FloorTask } from './floor.js';
import { otherCore, pin, serverCore } from './processes.js';

/** A server that is loaded. */
export interface Target {
  readonly baseUrl: string;
  readonly pid: number;
}

export interface Site {
  readonly front: Target;
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly adminToken: string;
  readonly partitions: number;
  /** Folder that is removed at the end. */
  readonly dir: string;
  /** Ends the run. */
  readonly signal: AbortSignal;
  /** Starts a floor in a process of its own. */
  startFloor(setup: FloorSetup): Promise<Target>;
  /** Stops everything that was started, newest first. */
  stop(): Promise<void>;
}

export interface SiteOptions {
  readonly partitions: number;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
  /** Where CPU profiles of the front go; none are taken without it. */
  readonly profile: string | undefined;
}

/** So large that a run never fills the journal: how far behind the flusher falls is a result, not a limit. */
const journal_high_water = 10_000_000;
/** The built program; this module runs from a folder beside it. */
const main = fileURLToPath(new URL('../main.js', import.meta.url));

const stopSignals = [
  ['SIGTERM', 2_000],
  ['SIGKILL', 2_000],
] as const;

async function startFloor(task: FloorTask, env: NodeJS.ProcessEnv, stops: Array<() => Promise<void>>) {
  const floor = fileURLToPath(new URL('floor.js', import.meta.url));
  const child = spawn(process.execPath, [...node_flags, floor], {
    env,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = exitOf(child);
  stops.push(() => endChild(child, exited, stopSignals));
  const listening = new Promise<{ port: number }>((resolve) => {
    child.once('message', (message) => resolve(message as { port: number }));
  });
  child.send(task);
  const outcome = await Promise.race([listening, exited]);
  if (typeof outcome === 'string' || outcome.port === 0) throw new Error('a floor did not start');
  const pid = child.pid as number;
  pin(pid, serverCore);
  return { baseUrl: `http://127.0.0.1:${outcome.port}`, pid };
}

/** Settings of a service that happens to be configured here are not those of a run. */
const withoutSettings = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !Object.hasOwn(settings, name)));

/** Starts everything. When a part fails, what has started is stopped again. */
export async function startSite(options: SiteOptions): Promise<Site> {
  const { say, signal } = options;
  const dir = mkdtempSync(join(tmpdir(), 'petrel-bench-'));
  // PostgreSQL may run as a user of its own, who has to come through.
  chmodSync(dir, 0o711);
  const stops: Array<() => Promise<void>> = [() => rm(dir, { recursive: true, force: true })];
  const stop = async () => {
    for (let next = stops.pop(); next; next = stops.pop()) await next();
  };
  try {
    await ensureRedis(say);
    say('starting Redis and PostgreSQL');
    const redis = await startRedis({ dir: join(dir, 'redis'), appendfsync: 'always', signal });
    stops.push(redis.stop);
    pin(redis.pid, otherCore);
    const postgres = await startPostgres({ dir: join(dir, 'postgres'), signal });
    stops.push(postgres.stop);
    pin(postgres.pid, otherCore);

    const adminToken = randomBytes(24).toString('hex');
    const port = await freePort();
    const env = {
      ...withoutSettings(process.env),
      PETREL_HOME: join(dir, 'home'),
      HOST: '127.0.0.1',
      PORT: String(port),
      SHARE_PORT: '0',
      REDIS_URL: redis.url,
      DATABASE_URL: postgres.url,
      PARTITIONS: String(options.partitions),
      ADMIN_TOKEN: adminToken,
      TOKEN_PEPPER: randomBytes(32).toString('hex'),
      TOKEN_KEYS: `k1:${randomBytes(32).toString('base64')}`,
      JOURNAL_HIGH_WATER: String(journal_high_water),
      UWS_HTTP_MAX_HEADERS_SIZE: '65536',
    };
    const profiled =
      options.profile === undefined
        ? {}
        : {
            NODE_OPTIONS: `--import=${pathToFileURL(fileURLToPath(new URL('profiler.js', import.meta.url)))}`,
            PETREL_BENCH_PROFILE: join(options.profile, 'front'),
          };
    const role = (name: string, extra = {}) => ({
      main,
      role: name,
      env: { ...env, ...extra },
      log: new RoleLog(name, join(dir, `${name}.log`), say),
      signal,
    });
    say('starting the service');
    await runRole(role('migrate'));
    const start = async (name: string, core: number, extra = {}) => {
      const running = await startRole(role(name, extra));
      stops.push(() => running.stop());
      pin(running.pid, core);
      return running.pid;
    };
    await start('flush', otherCore);
    const pid = await start('front', serverCore, profiled);
    return {
      front: { baseUrl: `http://127.0.0.1:${port}`, pid },
      redisUrl: redis.url,
      databaseUrl: postgres.url,
      adminToken,
      partitions: options.partitions,
      dir,
      signal,
      startFloor: (setup) =>
        startFloor({ setup, redisUrl: redis.url, partitions: options.partitions }, env, stops),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
