/**
 * Kills workers, fronts and a master of a Redis Cluster, and stops a worker, while each bot has three webhook routes.
 * No update is lost, each update goes to its route, and each chat stays in order.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKeys } from '../../src/store/core/keys.js';
import { type ClusterNode, type FreshCluster, freshCluster } from '../support/cluster.js';
import { nothingWrong } from '../support/ledger.js';
import { createRole, type RoleProcess, startPatiently } from '../support/role_process.js';
import { type Service, startService, type TestBot } from '../support/service.js';
import { masterOf, replicated } from './masters.js';
import { amount, nothingLost, patienceMs, report } from './report.js';
import { routeAll } from './routed.js';
import { createWorld, eventually } from './world.js';

const { partitions } = makeKeys(64);
let cluster: FreshCluster;
let nodes: readonly ClusterNode[];
let service: Service;
let workers: readonly [RoleProcess, RoleProcess];

beforeAll(async () => {
  cluster = await freshCluster();
  const replicas: ClusterNode[] = [];
  for (const master of [0, 1, 2]) replicas.push(await cluster.addReplica(master));
  nodes = [...cluster.nodes, ...replicas];
  const extraEnv = { WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32' };
  service = await startService({ fronts: 2, redis: cluster, extraEnv });
  workers = [service.deliver, createRole('deliver', async () => service.env)];
  await workers[1].start();
});
afterAll(async () => {
  await workers?.[1].stop();
  await (service ?? cluster)?.stop();
});

/** Kills the master that stores a bot, and waits until its replica has taken over. Returns the killed node. */
async function failOver({ id }: TestBot): Promise<ClusterNode> {
  const slot = partitions.slots[partitions.of(id)] as number;
  const master = await masterOf(nodes, slot);
  await replicated(master);
  await master.kill();
  await eventually('the replica is the master', async () => (await masterOf(nodes, slot)) !== master);
  return master;
}

test(
  'killing workers, fronts and a master of a Redis Cluster loses no update of three routes and keeps the order of each chat',
  async ({ onTestFinished }) => {
    const world = await createWorld(service);
    const { astray, taken, open, hold, close } = await routeAll(world, 20);
    onTestFinished(() => void close());
    const send = (count: number, restMs = 0) =>
      world.load({ count, restMs, front: (lane, tries) => (lane + tries) % 2 });
    /** Runs `work` while updates are pending and the receivers delay their answers. */
    const whilePending = async (work: () => Promise<unknown>) => {
      const release = hold();
      await send(100);
      await eventually('requests are open', () => open() > 0);
      await work();
      release();
    };
    await send(100);
    const rounds = amount(1, 10);
    for (let round = 0; round < rounds; round++) {
      for (const worker of workers) {
        await whilePending(() => worker.kill());
        await startPatiently(worker);
      }
      // Freezes a worker for longer than its lease, which ends after 5 s.
      await whilePending(async () => workers[0].pause());
      await sleep(7_000);
      workers[0].resume();
      for (const front of service.fronts) {
        const sending = send(100, 20);
        await front.kill();
        await startPatiently(front);
        await sending;
      }
      const bot = world.bots[round % world.bots.length] as TestBot;
      let former: ClusterNode | undefined;
      await whilePending(async () => {
        former = await failOver(bot);
      });
      await send(100);
      await former?.start();
    }
    const verdict = await world.settled(60_000);
    const figures = { rounds, taken, ...verdict };
    report('', 'workers, fronts and a master of a cluster killed, three routes', figures, [
      nothingLost(verdict),
    ]);
    expect(verdict).toMatchObject(nothingWrong);
    expect(Math.min(...Object.values(taken))).toBeGreaterThan(20);
    expect(astray).toEqual([]);
  },
  patienceMs,
);
