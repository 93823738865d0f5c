/** Provides PostgreSQL 15, the oldest version that Petrel supports, from Debian's package. */
import { spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { postgresUser } from '../../src/dev/postgres_binaries.js';
import { exitOf, freePort } from '../../src/dev/processes.js';
import { eventually } from '../faults/world.js';
import { ask } from './postgres_pair.js';
import { temporaryFolder } from './servers.js';

const programs = '/usr/lib/postgresql/15/bin';
export const postgres15Runs = existsSync(join(programs, 'postgres'));

export interface Postgres15 {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a server that has `wal_level = logical` and asks for passwords. */
export async function startPostgres15(): Promise<Postgres15> {
  const dir = temporaryFolder();
  const own = join(dir, 'own');
  const user = postgresUser();
  mkdirSync(own);
  writeFileSync(join(own, 'password'), 'first');
  if (user) for (const path of [own, join(own, 'password')]) chownSync(path, user.uid, user.gid);
  const options = { ...user, cwd: own, env: { PATH: process.env.PATH, LC_ALL: 'C' } };
  const data = join(own, 'data');
  const made = spawnSync(
    join(programs, 'initdb'),
    [
      '-D',
      data,
      '-U',
      'first',
      '-A',
      'scram-sha-256',
      `--pwfile=${join(own, 'password')}`,
      '-E',
      'UTF8',
      '-N',
    ],
    { ...options, encoding: 'utf8' },
  );
  if (made.status !== 0) throw new Error(made.stderr);
  const port = await freePort();
  const settings = [
    'wal_level=logical',
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'fsync=off',
  ];
  const child = spawn(
    join(programs, 'postgres'),
    ['-D', data, '-p', String(port), ...settings.flatMap((each) => ['-c', each])],
    { ...options, stdio: 'ignore' },
  );
  const exited = exitOf(child);
  const url = `postgres://first:first@127.0.0.1:${port}/postgres`;
  await eventually('PostgreSQL 15 answers', () =>
    ask(url, 'select 1').then(
      () => true,
      () => false,
    ),
  );
  return {
    url,
    async stop() {
      child.kill('SIGINT');
      await exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}
