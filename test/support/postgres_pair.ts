/**
 * A primary Postgres and a standby with streaming replication, behind an address that a test can point at either
 * server.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres } from '../../src/dev/postgres.js';
import { freePort, type LocalServer } from '../../src/dev/processes.js';
import { eventually } from '../faults/world.js';
import { temporaryFolder } from './servers.js';

export interface Address {
  readonly port: number;
  /** Cuts all connections, and sends new connections to this port. */
  point(to: number): void;
  pointNew(to: number): void;
  close(): Promise<unknown>;
}

/** Opens one address in front of changing servers, like a virtual address or a DNS name. */
export async function openAddress(): Promise<Address> {
  const sockets = new Set<Socket>();
  let target = 0;
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.setNoDelay(true);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    port,
    point(to) {
      target = to;
      for (const socket of sockets) socket.destroy();
    },
    pointNew(to) {
      target = to;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

export function copyFolder(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-a', from, to], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

export async function ask<R>(url: string, text: string, values: readonly unknown[] = []): Promise<R[]> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(text, [...values])).rows as R[];
  } finally {
    await client.end();
  }
}

export const atPort = (url: string, port: number): string => url.replace(/:\d+\//, `:${port}/`);

export interface Pair {
  readonly primaryUrl: string;
  readonly primaryPort: number;
  readonly standbyUrl: string;
  readonly standbyPort: number;
  /** Makes the standby from the present data of the primary, and starts it. The primary restarts. */
  addStandby(): Promise<void>;
  caughtUp(): Promise<void>;
  cut(): Promise<void>;
  killPrimary(): Promise<void>;
  startPrimary(): Promise<void>;
  promote(): Promise<void>;
  close(): Promise<void>;
}

export async function startPair({ durable = false } = {}): Promise<Pair> {
  const dir = temporaryFolder();
  const options = { dir: join(dir, 'primary'), port: await freePort(), durable, detached: false };
  const second = { ...options, dir: join(dir, 'standby'), port: await freePort() };
  let primary = await startPostgres(options);
  let standby: Promise<LocalServer> | undefined;
  const primaryUrl = primary.url;
  const standbyUrl = atPort(primaryUrl, second.port);
  const lsn = async (url: string, call: string) =>
    (await ask<{ at: string }>(url, `select ${call}::text as at`))[0]?.at;

  function makeStandby(): void {
    const { username, password, port } = new URL(primaryUrl);
    const conninfo = `host=127.0.0.1 port=${port} user=${username} password=${password} application_name=standby`;
    const data = join(second.dir, 'data');
    const settings = `primary_conninfo = '${conninfo}'\nwal_retrieve_retry_interval = 100\n`;
    appendFileSync(join(data, 'postgresql.auto.conf'), settings);
    writeFileSync(join(data, 'standby.signal'), '');
  }

  return {
    primaryUrl,
    primaryPort: options.port,
    standbyUrl,
    standbyPort: second.port,
    async addStandby() {
      await primary.stop();
      copyFolder(options.dir, second.dir);
      makeStandby();
      primary = await startPostgres(options);
      // Does not wait for the start, because the standby counts as started only when it is promoted.
      standby = startPostgres(second);
      standby.catch(() => undefined);
      await eventually('the standby answers', () =>
        lsn(standbyUrl, 'pg_last_wal_replay_lsn()').then(Boolean, () => false),
      );
    },
    async caughtUp() {
      // Writes a message to the write-ahead log first. Without it, the insert position may be beyond the header of a
      // page that is not written yet.
      const end = await lsn(primaryUrl, "pg_logical_emit_message(true, 'test', '')");
      await eventually(
        'the standby has all data',
        async () => (await lsn(standbyUrl, `(pg_last_wal_replay_lsn() >= '${end}')`)) === 'true',
      );
    },
    async cut() {
      await ask(standbyUrl, "alter system set primary_conninfo = ''");
      await ask(standbyUrl, 'select pg_reload_conf()');
      const receivers = 'select count(*)::int as n from pg_stat_wal_receiver';
      await eventually(
        'the standby no longer follows',
        async () => (await ask<{ n: number }>(standbyUrl, receivers))[0]?.n === 0,
      );
    },
    async killPrimary() {
      process.kill(primary.pid, 'SIGQUIT');
      await primary.exited;
    },
    async startPrimary() {
      primary = await startPostgres(options);
    },
    async promote() {
      await ask(standbyUrl, 'select pg_promote(true, 30)');
      await standby;
    },
    async close() {
      await (await standby?.catch(() => undefined))?.stop();
      await primary.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
