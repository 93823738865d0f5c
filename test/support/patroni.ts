/** Two Postgres servers under Patroni, with one etcd: a primary and a synchronous standby. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram } from '../../bench/service/balancer.js';
import { postgresUser } from '../../src/dev/postgres_binaries.js';
import { exitOf, freePort } from '../../src/dev/processes.js';
import { eventually } from '../faults/world.js';
import { ask } from './postgres_pair.js';
import { temporaryFolder } from './servers.js';

const postgresFolder = '/usr/lib/postgresql/15/bin';

export const patroniRuns =
  existsSync(postgresFolder) && findProgram('patroni') !== undefined && findProgram('etcd') !== undefined;

interface Node {
  readonly name: string;
  readonly url: string;
  readonly port: number;
  readonly rest: number;
  readonly data: string;
  readonly process: ChildProcess;
  readonly exited: Promise<string>;
}

export interface PatroniCluster {
  readonly both: string;
  /** The node that Patroni reports as the primary, or undefined while there is none. */
  primary(): Promise<{ readonly url: string; readonly port: number } | undefined>;
  /** Kills the primary and its Patroni with SIGKILL, as in a power failure. */
  killPrimary(): Promise<void>;
  stop(): Promise<void>;
}

const answers = async (port: number, path: string): Promise<boolean> =>
  (await fetch(`http://127.0.0.1:${port}${path}`).catch(() => null))?.status === 200;

export async function startPatroni(): Promise<PatroniCluster> {
  const dir = temporaryFolder();
  const user = postgresUser();
  const own = join(dir, 'own');
  mkdirSync(own, { mode: 0o700 });
  if (user) chownSync(own, user.uid, user.gid);
  const password = randomBytes(12).toString('hex');
  const run = (program: string, args: readonly string[]) => {
    const child = spawn(findProgram(program) as string, args, {
      ...user,
      cwd: own,
      env: { PATH: process.env.PATH, LC_ALL: 'C', HOME: own },
      stdio: 'ignore',
    });
    return { child, exited: exitOf(child) };
  };
  const [client, peer] = [await freePort(), await freePort()];
  const peers = `http://127.0.0.1:${peer}`;
  const etcd = run('etcd', [
    ...['--data-dir', join(own, 'etcd'), '--name', 'one', '--initial-cluster', `one=${peers}`],
    ...['--listen-client-urls', `http://127.0.0.1:${client}`],
    ...['--advertise-client-urls', `http://127.0.0.1:${client}`],
    ...['--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers],
  ]);
  await eventually('etcd answers', () => answers(client, '/health'));

  async function startNode(name: string): Promise<Node> {
    const [port, rest] = [await freePort(), await freePort()];
    const data = join(own, name);
    const settings = {
      scope: 'petrel',
      name,
      restapi: { listen: `127.0.0.1:${rest}`, connect_address: `127.0.0.1:${rest}` },
      etcd3: { host: `127.0.0.1:${client}` },
      bootstrap: {
        dcs: { ttl: 20, loop_wait: 1, retry_timeout: 3, synchronous_mode: true },
        initdb: [{ encoding: 'UTF8' }, { locale: 'C' }],
        pg_hba: [
          'host all all 127.0.0.1/32 scram-sha-256',
          'host replication all 127.0.0.1/32 scram-sha-256',
        ],
      },
      postgresql: {
        listen: `127.0.0.1:${port}`,
        connect_address: `127.0.0.1:${port}`,
        data_dir: data,
        bin_dir: postgresFolder,
        basebackup: [{ checkpoint: 'fast' }],
        pgpass: join(own, `${name}.pgpass`),
        authentication: {
          superuser: { username: 'petrel', password },
          replication: { username: 'follower', password },
        },
        parameters: { unix_socket_directories: own },
      },
    };
    // Patroni reads YAML. The configuration is written as JSON, which is valid YAML.
    const file = join(own, `${name}.yml`);
    writeFileSync(file, JSON.stringify(settings));
    const { child, exited } = run('patroni', [file]);
    const url = `postgres://petrel:${password}@127.0.0.1:${port}/petrel`;
    return { name, url, port, rest, data, process: child, exited };
  }

  const first = await startNode('a');
  await eventually('there is a primary', () => answers(first.rest, '/primary'), 60_000);
  await ask(first.url.replace(/petrel$/, 'postgres'), 'create database petrel');
  const second = await startNode('b');
  await eventually('there is a synchronous standby', () => answers(second.rest, '/synchronous'), 60_000);
  const nodes = [first, second];

  const primary = async () => {
    for (const node of nodes) if (await answers(node.rest, '/primary')) return node;
    return undefined;
  };
  const postmaster = ({ data }: Node) =>
    Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]);
  return {
    both: first.url.replace(/@[^/]+/, (host) => `${host},127.0.0.1:${second.port}`),
    primary,
    async killPrimary() {
      const node = (await primary()) as Node;
      const pid = postmaster(node);
      node.process.kill('SIGKILL');
      await node.exited;
      process.kill(pid, 'SIGKILL');
    },
    async stop() {
      for (const node of nodes) {
        // Stops Patroni, which also stops its Postgres.
        node.process.kill('SIGTERM');
        await node.exited;
      }
      etcd.child.kill('SIGTERM');
      await etcd.exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}
