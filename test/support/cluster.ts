/**
 * A Redis Cluster for tests: three masters on free ports, evenly assigned slots, and the password that every test
 * server has.
 *
 *   const cluster = await freshCluster();
 *   const service = await startService({ redis: cluster });
 *   await cluster.nodes[1].kill();
 *   await cluster.nodes[1].start();
 *   await cluster.moveSlot(slot, 0, 2);
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { freePort } from '../../src/dev/processes.js';
import { clusterSlots } from '../../src/redis/slots.js';
import { type FreshRedis, temporaryFolder } from './servers.js';

export interface ClusterNode {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly id: string;
  readonly dir: string;
  readonly client: Redis;
  kill(): Promise<void>;
  /** Starts the server with the data from its last run, and waits until the cluster serves every slot. */
  start(): Promise<void>;
}

export interface FreshCluster extends FreshRedis {
  readonly cluster: readonly string[];
  readonly nodes: readonly ClusterNode[];
  /** Returns the index of the master that owns a slot, according to the first master that answers. */
  ownerOf(slot: number): Promise<number>;
  /** Adds a replica of a master and waits until it has caught up. The replica is not in `nodes`. */
  addReplica(master: number): Promise<ClusterNode>;
  beginMove(slot: number, from: number, to: number): Promise<void>;
  /** Moves up to `count` keys of a slot. Returns true when no key is left. */
  moveKeys(slot: number, from: number, to: number, count: number): Promise<boolean>;
  endMove(slot: number, to: number): Promise<void>;
}

export function openMasters({ url, cluster = [url] }: FreshRedis): Redis[] {
  return cluster.map((master) => new Redis(master));
}

/**
 * Opens a client that emits `monitor` for each command of this server. Unlike ioredis' `monitor()`, this function works
 * if a busy server sends the first commands in one packet with the reply to MONITOR.
 */
export async function openMonitor(server: Redis): Promise<Redis> {
  const monitor = server.duplicate({ monitor: true });
  const sendCommand = monitor.sendCommand.bind(monitor);
  monitor.sendCommand = (command, stream) => {
    const { resolve } = command;
    if (command.name === 'monitor')
      command.resolve = (reply) => {
        Object.assign(monitor, { status: 'monitoring' });
        resolve(reply);
      };
    return sendCommand(command, stream);
  };
  await once(monitor, 'monitoring');
  return monitor;
}

/**
 * Opens a client for commands on a single key. The client works for a key on any server. The client's `keys` lists the
 * keys of all masters.
 */
export function openAnywhere({ url, cluster }: FreshRedis): Redis {
  if (!cluster) return new Redis(url);
  const { password } = new URL(url);
  const client = new Cluster([...cluster], { redisOptions: { password } });
  const keys = async (pattern: string) => {
    // The client knows the masters only after it has connected.
    if (client.status !== 'ready') await once(client, 'ready');
    return (await Promise.all(client.nodes('master').map((master) => master.keys(pattern)))).flat();
  };
  return Object.assign(client, { keys }) as unknown as Redis;
}

const nodesCount = 3;
const readyMsMax = 60_000;

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + readyMsMax;
  while (!(await holds().catch(() => false))) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`);
    await sleep(20);
  }
}

async function serves(client: Redis): Promise<boolean> {
  return (await client.ping()) === 'PONG';
}

async function startNode(dir: string, password: string, ready: () => Promise<void>): Promise<ClusterNode> {
  const [port, bus] = [await freePort(), await freePort()];
  mkdirSync(dir);
  const settings = {
    ...{ port, 'cluster-port': bus, bind: '127.0.0.1', dir, save: '' },
    ...{ 'cluster-enabled': 'yes', 'cluster-config-file': 'nodes.conf', 'cluster-node-timeout': 1_500 },
    ...{ 'cluster-require-full-coverage': 'no', 'cluster-announce-ip': '127.0.0.1' },
    ...{ appendonly: 'yes', appendfsync: 'no', 'maxmemory-policy': 'noeviction' },
    ...{ requirepass: password, masterauth: password, 'repl-diskless-sync-delay': 0 },
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  let child: ChildProcess;
  const run = () => {
    child = spawn('redis-server', args, { stdio: 'ignore' });
  };
  run();
  const url = `redis://:${password}@127.0.0.1:${port}`;
  const client = new Redis(url, { retryStrategy: () => 30, maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  await until('a server of the cluster', () => serves(client));
  return {
    url,
    port,
    dir,
    client,
    id: String(await client.cluster('MYID')),
    get pid() {
      return child.pid ?? 0;
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
    async start() {
      run();
      await ready();
    },
  };
}

export async function freshCluster(): Promise<FreshCluster> {
  const dir = temporaryFolder();
  const password = randomBytes(12).toString('hex');
  const nodes: ClusterNode[] = [];
  const added: ClusterNode[] = [];
  const living = () => nodes.filter(({ client }) => client.status === 'ready');
  const settled = () =>
    until('a cluster that serves every slot', async () => {
      const views = await Promise.all(
        nodes.map(async ({ client }) => [
          String(await client.cluster('INFO')),
          String(await client.cluster('NODES')),
        ]),
      );
      return views.every(
        ([info, known]) =>
          /cluster_state:ok/.test(info as string) &&
          /cluster_slots_ok:16384/.test(info as string) &&
          !/fail|handshake|noaddr/.test(known as string),
      );
    });

  const startOne = (name: string) => startNode(join(dir, name), password, settled);
  nodes.push(...(await Promise.all(Array.from({ length: nodesCount }, (_, i) => startOne(`node-${i}`)))));
  const [first] = nodes as [ClusterNode];
  const share = clusterSlots / nodesCount;
  await Promise.all(
    nodes.map(async ({ client }, i) => {
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
      await client.call('CLUSTER', 'ADDSLOTSRANGE', Math.ceil(share * i), Math.ceil(share * (i + 1)) - 1);
    }),
  );
  const meet = async (other: ClusterNode) => {
    const bus = (await other.client.config('GET', 'cluster-port')) as string[];
    await first.client.call('CLUSTER', 'MEET', '127.0.0.1', other.port, bus[1] as string);
  };
  await Promise.all(nodes.slice(1).map(meet));
  await settled();

  const node = (index: number) => nodes[index] as ClusterNode;
  return {
    url: first.url,
    port: first.port,
    pid: first.pid,
    cluster: nodes.map(({ url }) => url),
    nodes,
    async ownerOf(slot) {
      const reply: unknown = await living()[0]?.client.cluster('SLOTS');
      const rows = reply as Array<[number, number, [string, number]]>;
      const row = rows.find(([start, end]) => slot >= start && slot <= end);
      return nodes.findIndex(({ port }) => port === row?.[2][1]);
    },
    async addReplica(master) {
      const replica = await startOne(`replica-${added.length}`);
      added.push(replica);
      await meet(replica);
      await until('a replica that knows its master', async () => {
        await replica.client.call('CLUSTER', 'REPLICATE', node(master).id);
        return true;
      });
      // Waits until the replica has learned the slots of its master, because only such a replica can be elected.
      await until(
        'a replica that has caught up',
        async () =>
          /master_link_status:up/.test(await replica.client.info('replication')) &&
          /cluster_slots_assigned:16384/.test(String(await replica.client.cluster('INFO'))),
      );
      await settled();
      return replica;
    },
    async beginMove(slot, from, to) {
      await node(to).client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', node(from).id);
      await node(from).client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', node(to).id);
    },
    async moveKeys(slot, from, to, count) {
      const { client } = node(from);
      const keys = (await client.call('CLUSTER', 'GETKEYSINSLOT', slot, count)) as string[];
      const auth = ['AUTH', password, 'KEYS', ...keys];
      if (keys.length > 0) await client.call('MIGRATE', '127.0.0.1', node(to).port, '', 0, 5_000, ...auth);
      return keys.length < count;
    },
    async endMove(slot, to) {
      // Sends the command to the new master first. The new master then raises its epoch, so that the other nodes accept
      // the change.
      for (const { client } of [node(to), ...living().filter((each) => each !== node(to))])
        await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', node(to).id);
    },
    async stop() {
      for (const { client } of [...nodes, ...added]) client.disconnect();
      await Promise.all([...nodes, ...added].map((each) => each.kill()));
      await rm(dir, { recursive: true, force: true });
    },
  };
}
