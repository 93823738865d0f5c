/**
 * Repeatedly kills the master of one shard in a Redis Cluster of six nodes under load, so that the replica takes over.
 * Replication is asynchronous, so Redis may lose the last acknowledged writes. Writes that reached the replica must
 * survive.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { makeKeys } from '../../src/store/core/keys.js';
import { type ClusterNode, type FreshCluster, freshCluster } from '../support/cluster.js';
import { type Service, startService } from '../support/service.js';
import { masterOf, slotsSeenBy } from './masters.js';
import { amount, atMost, nothingLost, patienceMs, report } from './report.js';
import { createWorld, eventually } from './world.js';

let cluster: FreshCluster | undefined;
let service: Service | undefined;
afterEach(async () => {
  await (service ?? cluster)?.stop();
  service = undefined;
  cluster = undefined;
});

const keys = makeKeys(64);

/**
 * The maximum time until the shard of a killed master serves again. The cluster itself needs the node timeout (1.5 s
 * here) and an election.
 */
const recoverMsMax = 10_000;

/** Returns everything in a node’s append-only file, including data that the node has since lost. */
function writtenBy({ dir }: ClusterNode): string {
  const folder = join(dir, 'appendonlydir');
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'latin1'))
    .join('\n');
}

const holds = (written: string, text: string) => new RegExp(`${text}(?!\\d)`).test(written);

test(
  'R18: after a master is killed under load, its replica takes over with every write that the replica had received',
  async () => {
    const six = await freshCluster();
    cluster = six;
    const replicas: ClusterNode[] = [];
    for (const master of [0, 1, 2]) replicas.push(await six.addReplica(master));
    const all = [...six.nodes, ...replicas];
    const made = await startService({ redis: six, fronts: 2 });
    service = made;
    const world = await createWorld(made);
    const slotOf = (chat: string) =>
      keys.partitions.slots[keys.partitions.of(Number(chat.split('.')[0]))] as number;
    // The slot of one bot. The test kills the master of this slot. This master has other slots too.
    const lost = slotOf(String(world.bots[0]?.id));
    world.poll((round) => round % 2);
    const ended = new AbortController();
    let ownShard = (_: number) => false;
    let lastThere = 0;
    let calls = 0;
    const refusals: Record<string, number> = {};
    const unclear: string[] = [];
    const loading = world.load({
      count: Number.POSITIVE_INFINITY,
      front: (lane, tries) => (lane + tries) % 2,
      signal: ended.signal,
      restMs: 5,
      onAcknowledged: (_total, _ms, chat) => {
        calls++;
        if (ownShard(slotOf(chat))) lastThere = performance.now();
      },
      onRefusal: (status, body) => {
        calls++;
        const { description, parameters } = (body ?? {}) as { description?: string; parameters?: unknown };
        refusals[`${status} ${description}`] = (refusals[`${status} ${description}`] ?? 0) + 1;
        if (status !== 503 || (parameters as { retry_after?: number })?.retry_after === undefined)
          unclear.push(`${status} ${JSON.stringify(body)}`);
      },
    });
    const recoveredMs: number[] = [];
    const promoted: ClusterNode[] = [];
    for (let kill = 0; kill < amount(1, 6); kill++) {
      await sleep(1_500);
      const master = await masterOf(all, lost);
      const own = (await slotsSeenBy(master)).filter(([, , [, port]]) => port === master.port);
      ownShard = (slot) => own.some(([start, end]) => slot >= start && slot <= end);
      await master.kill();
      const killed = performance.now();
      lastThere = 0;
      await eventually('calls of that shard succeed', () => lastThere > killed, 6 * recoverMsMax);
      recoveredMs.push(Math.round(lastThere - killed));
      promoted.push(await masterOf(all, lost));
      await master.start();
      await eventually(
        'the former master follows',
        async () => /master_link_status:up/.test(await master.client.info('replication')),
        30_000,
      );
    }
    await sleep(1_000);
    ended.abort();
    await loading;
    const verdict = await world.settled();
    const written = promoted.map(writtenBy);
    // Finds the messages that are lost although the replica had received them before the takeover.
    const kept = verdict.texts.filter((text) => written.some((each) => holds(each, text)));
    const logs = made.fronts.map((front) => front.log()).join('') + made.deliver.log() + made.flush.log();
    const { lost: gone, doubled, reordered, invented, reused } = verdict;
    report(
      'R18',
      'one master of a cluster of six nodes killed under load',
      {
        recoveredMs,
        calls,
        refusals,
        acknowledgedAndLost: gone,
        toldBotsAndLost: invented,
        doubled,
        reordered,
        examples: verdict.examples,
      },
      [
        atMost('lost although the replica had it', kept.length, 0),
        atMost('ids given twice', reused, 0),
        atMost('refusals that are not 503 with retry_after', unclear.length, 0),
        atMost('longest time until the shard served again, ms', Math.max(...recoveredMs), recoverMsMax),
      ],
    );
    expect(kept).toEqual([]);
    expect({ reused, doubled, reordered }).toEqual({ reused: 0, doubled: 0, reordered: 0 });
    expect(unclear).toEqual([]);
    expect(verdict.acknowledged).toBeGreaterThan(100);
    for (const ms of recoveredMs) expect(ms).toBeLessThan(recoverMsMax);
    expect(logs).toMatch(/none is used twice|No id is used twice/);
  },
  patienceMs,
);

test(
  'R22: while slots are resharded under load, at most one call in a thousand is refused',
  async () => {
    const three = await freshCluster();
    cluster = three;
    const made = await startService({ redis: three, fronts: 2 });
    service = made;
    const world = await createWorld(made);
    world.poll((round) => round % 2);
    const ended = new AbortController();
    let acknowledged = 0;
    const refusals: Record<string, number> = {};
    const loading = world.load({
      count: Number.POSITIVE_INFINITY,
      front: (lane, tries) => (lane + tries) % 2,
      signal: ended.signal,
      // Calls wait only for a limited time while their slot moves. The slots must stay small enough for a busy machine
      // to move them in this time.
      restMs: 20,
      onAcknowledged: () => acknowledged++,
      onRefusal: (status) => {
        refusals[status] = (refusals[status] ?? 0) + 1;
      },
    });
    const slots = [
      ...new Set(world.bots.map(({ id }) => keys.partitions.slots[keys.partitions.of(id)] as number)),
    ];
    for (let round = 0; round < amount(2, 20); round++) {
      for (const slot of slots) {
        const from = await three.ownerOf(slot);
        const to = (from + 1) % 3;
        const before = acknowledged;
        await three.beginMove(slot, from, to);
        while (!(await three.moveKeys(slot, from, to, 300))) await sleep(1);
        await three.endMove(slot, to);
        await eventually('calls continue', () => acknowledged > before + 20);
      }
    }
    ended.abort();
    await loading;
    const verdict = await world.settled();
    const refused = Object.values(refusals).reduce((sum, count) => sum + count, 0);
    const share = refused / (refused + acknowledged);
    const logs = made.fronts.map((front) => front.log()).join('') + made.deliver.log() + made.flush.log();
    report('R22', 'slots moved under load', { acknowledged, refusals, slots: slots.length }, [
      nothingLost(verdict),
      atMost('share of calls refused', share, 0.001),
    ]);
    const { lost, doubled, reordered, reused } = verdict;
    expect({ lost, doubled, reordered, reused }).toEqual({ lost: 0, doubled: 0, reordered: 0, reused: 0 });
    expect(logs).not.toContain('Command queue state error');
    expect(refused).toBeLessThanOrEqual(Math.ceil(acknowledged / 1_000));
  },
  patienceMs,
);
