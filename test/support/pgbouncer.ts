import { spawn, spawnSync } from 'node:child_process';
import { chownSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { findProgram } from '../../bench/service/balancer.js';
import { postgresUser } from '../../src/dev/postgres_binaries.js';
import { endChild, exitOf, freePort } from '../../src/dev/processes.js';
import { temporaryFolder } from './servers.js';

/** The path of PgBouncer: PETREL_TEST_PGBOUNCER, or the installed program. Undefined if there is none. */
export const pgbouncer = process.env.PETREL_TEST_PGBOUNCER || findProgram('pgbouncer');

/** `unnamed` for versions before 1.21, which do not support prepared statements. */
export function poolerForm(): 'unnamed' | 'prepared' {
  const output = spawnSync(pgbouncer as string, ['--version'], { encoding: 'utf8' }).stdout;
  const [, major = 0, minor = 0] = /PgBouncer (\d+)\.(\d+)/.exec(output) ?? [];
  return Number(major) > 1 || Number(minor) >= 21 ? 'prepared' : 'unnamed';
}

export interface Pooler {
  readonly url: string;
  readonly bareUrl: string;
  stats(): Promise<Readonly<Record<string, number>>>;
  stop(): Promise<void>;
}

export async function startPooler(upstream: string, form = poolerForm()): Promise<Pooler> {
  const { hostname, port: upstreamPort, username, password, pathname } = new URL(upstream);
  const dir = temporaryFolder();
  const port = await freePort();
  const user = postgresUser();
  const file = join(dir, 'pgbouncer.ini');
  const server = `host=${hostname} port=${upstreamPort} user=${username} password=${password}`;
  const settings = [
    '[databases]',
    `${pathname.slice(1)} = ${server} dbname=${pathname.slice(1)}`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1`,
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    `admin_users = ${username}`,
    'pool_mode = transaction',
    'default_pool_size = 10',
    'server_login_retry = 0.1',
    ...(form === 'prepared' ? ['max_prepared_statements = 200'] : []),
    `logfile = ${join(dir, 'pgbouncer.log')}`,
  ];
  writeFileSync(file, `${settings.join('\n')}\n`, { mode: 0o600 });
  if (user) for (const path of [dir, file]) chownSync(path, user.uid, user.gid);
  const child = spawn(pgbouncer as string, ['-q', file], { ...user, env: {}, stdio: 'ignore' });
  const exited = exitOf(child);
  const bareUrl = `postgres://${username}:${password}@127.0.0.1:${port}${pathname}`;
  const admin = new pg.Client({ connectionString: bareUrl.replace(pathname, '/pgbouncer') });
  for (let tries = 0; ; tries++) {
    const attempt = new pg.Client(bareUrl);
    attempt.on('error', () => {});
    const answered = await attempt.connect().then(
      () => true,
      () => false,
    );
    await attempt.end().catch(() => {});
    if (answered) break;
    if (tries > 100) throw new Error('pgbouncer does not answer');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  admin.on('error', () => {});
  await admin.connect();
  return {
    bareUrl,
    url: `${bareUrl}?pooler=${form}`,
    async stats() {
      const { rows } = await admin.query('show stats');
      return rows.find((row) => row.database === pathname.slice(1)) ?? {};
    },
    async stop() {
      await admin.end().catch(() => {});
      await endChild(child, exited, [
        ['SIGINT', 3_000],
        ['SIGKILL', 2_000],
      ]);
      await rm(dir, { recursive: true, force: true });
    },
  };
}
