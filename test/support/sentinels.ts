/**
 * A Redis with three Sentinels for tests: a master and a replica on free ports, with the password that every test
 * server has.
 *
 *   const watched = await freshSentinels();
 *   const service = await startService({ redis: watched });
 *   await watched.failOver();
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from '../../src/dev/processes.js';
import { type FreshRedis, temporaryFolder } from './servers.js';

export interface WatchedNode {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly client: Redis;
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface FreshSentinels extends FreshRedis {
  readonly sentinels: readonly string[];
  readonly sentinelPids: readonly number[];
  readonly masterUrl: string;
  /** The two servers. The first server starts as the master. */
  readonly nodes: readonly [WatchedNode, WatchedNode];
  master(): Promise<number>;
  /** Waits until the Sentinels name a master other than `former`, and this server reports that it is the master. */
  replaced(former: number): Promise<void>;
  caughtUp(): Promise<void>;
}

const name = 'petrel';
/**
 * How long a test waits for the Sentinels. After a pause of the machine, a Sentinel does nothing for 30 s, so the limit
 * is longer.
 */
const readyMsMax = 60_000;

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + readyMsMax;
  while (!(await holds().catch(() => false))) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`);
    await sleep(20);
  }
}

interface Server {
  readonly port: number;
  readonly url: string;
  readonly client: Redis;
  readonly pid: number;
  kill(): Promise<void>;
  run(): void;
  ready(): Promise<void>;
}

async function startServer(port: number, password: string, args: readonly string[]): Promise<Server> {
  let child: ChildProcess;
  const run = () => {
    const started = spawn('redis-server', args, { stdio: 'ignore' });
    child = started;
  };
  run();
  const url = `redis://:${password}@127.0.0.1:${port}`;
  const client = new Redis(url, { protocol: 2, retryStrategy: () => 30, maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  return {
    port,
    url,
    client,
    get pid() {
      return child.pid ?? 0;
    },
    run,
    ready: () => until('a server that answers', async () => (await client.ping()) === 'PONG'),
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function startNode(dir: string, password: string, masterPort?: number): Promise<WatchedNode> {
  const port = await freePort();
  mkdirSync(dir);
  const settings = {
    ...{ port, bind: '127.0.0.1', dir, save: '', appendonly: 'yes', appendfsync: 'no' },
    ...{ 'maxmemory-policy': 'noeviction', requirepass: password, masterauth: password },
    ...{ 'repl-diskless-sync-delay': 0, 'repl-ping-replica-period': 1 },
    ...(masterPort === undefined ? {} : { replicaof: `127.0.0.1 ${masterPort}` }),
  };
  // Gives the server a configuration file, because Sentinels write the replication settings into it.
  const file = join(dir, 'redis.conf');
  const lines = Object.entries(settings).map(([key, value]) => `${key} ${value === '' ? '""' : value}`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  const server = await startServer(port, password, [file]);
  await server.ready();
  return Object.assign(server, {
    async start() {
      server.run();
      await server.ready();
    },
  });
}

/**
 * Configures each Sentinel with the other Sentinels and the replica, so that tests need not wait for their discovery.
 */
async function startSentinels(
  dir: string,
  password: string,
  [master, replica]: readonly [WatchedNode, WatchedNode],
): Promise<Server[]> {
  const those = await Promise.all(
    Array.from({ length: 3 }, async () => ({ port: await freePort(), id: randomBytes(20).toString('hex') })),
  );
  return Promise.all(
    those.map(async ({ port, id }) => {
      const lines = [
        `port ${port}`,
        'bind 127.0.0.1',
        `dir ${dir}`,
        `requirepass ${password}`,
        `sentinel sentinel-pass ${password}`,
        `sentinel myid ${id}`,
        `sentinel monitor ${name} 127.0.0.1 ${master.port} 2`,
        `sentinel auth-pass ${name} ${password}`,
        `sentinel down-after-milliseconds ${name} 1000`,
        `sentinel failover-timeout ${name} 6000`,
        `sentinel known-replica ${name} 127.0.0.1 ${replica.port}`,
        ...those
          .filter((other) => other.port !== port)
          .map((other) => `sentinel known-sentinel ${name} 127.0.0.1 ${other.port} ${other.id}`),
      ];
      const file = join(dir, `sentinel-${port}.conf`);
      writeFileSync(file, `${lines.join('\n')}\n`);
      const server = await startServer(port, password, [file, '--sentinel']);
      await server.ready();
      return server;
    }),
  );
}

export async function freshSentinels(): Promise<FreshSentinels> {
  const dir = temporaryFolder();
  const password = randomBytes(12).toString('hex');
  const first = await startNode(join(dir, 'node-0'), password);
  const second = await startNode(join(dir, 'node-1'), password, first.port);
  const nodes = [first, second] as const;
  const follows = async ({ client }: WatchedNode) =>
    /master_link_status:up/.test(await client.info('replication'));
  await until('a replica that follows', () => follows(second));
  const sentinels = await startSentinels(dir, password, nodes);
  const [asked] = sentinels as [Server];
  // Waits until a Sentinel has received a reply from the replica, because only such a replica can be elected.
  await until('Sentinels that could elect', async () => {
    const usable = await Promise.all(
      sentinels.map(async ({ client }) => {
        const [state] = (await client.call('SENTINEL', 'REPLICAS', name)) as string[][];
        const of = (field: string) => state?.[state.indexOf(field) + 1];
        const quorum = String(await client.call('SENTINEL', 'CKQUORUM', name));
        return /^OK/.test(quorum) && of('flags') === 'slave' && of('master-link-status') === 'ok';
      }),
    );
    return usable.every(Boolean);
  });
  async function master(): Promise<number> {
    const [, port] = (await asked.client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)) as string[];
    return nodes.findIndex((node) => node.port === Number(port));
  }
  const offset = async ({ client }: WatchedNode) =>
    /(?:slave_repl_offset|master_repl_offset):(\d+)/.exec(await client.info('replication'))?.[1];
  return {
    url: first.url,
    masterUrl: `redis://:${password}@${name}`,
    port: first.port,
    pid: first.pid,
    sentinels: sentinels.map(({ url }) => url),
    sentinelPids: sentinels.map(({ pid }) => pid),
    nodes,
    master,
    replaced: (former) =>
      until('another master', async () => {
        const present = await master();
        if (present === former) return false;
        return /^role:master/m.test(await (nodes[present] as WatchedNode).client.info('replication'));
      }),
    caughtUp: () =>
      until('a replica that has all', async () => {
        const [one, other] = await Promise.all(nodes.map(offset));
        return one !== undefined && one === other;
      }),
    async stop() {
      for (const { client } of [...sentinels, ...nodes]) client.disconnect();
      await Promise.all([...sentinels, ...nodes].map((server) => server.kill()));
      await rm(dir, { recursive: true, force: true });
    },
  };
}
