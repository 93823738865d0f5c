/** Tests the whole service on a Redis Cluster: while a slot moves, while one master is down, and after a failover. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventually, openEvents } from '../clients/event_source.js';
import { type Answer, resultOf } from '../support/service.js';
import {
  bots,
  cluster,
  groups,
  type Heard,
  history,
  offsets,
  onCluster,
  once,
  owner,
  poll,
  say,
  sayInGroup,
  service,
  slotOfId,
} from './cluster_world.js';

const readyz = async (url: string) => (await fetch(`${url}/readyz`)).status;

onCluster();

test('while a slot moves under traffic, no acknowledged message is lost and no id is given out twice', async () => {
  const bot = bots[0];
  const slot = slotOfId(bot.id);
  const acked: string[] = [];
  const refused: string[] = [];
  const warned = (text: string) =>
    service.fronts
      .map((front) => front.log())
      .join('')
      .includes(text);
  const ids: number[] = [];
  const received: Heard = { ids: [], texts: [] };
  let busy = true;
  let round = 0;
  const talk = async (front: number) => {
    while (busy) {
      const text = `moving ${front} ${++round}`;
      const answer = await say(bot, text, front);
      expect([200, 503]).toContain(answer.status);
      if (answer.status === 200) {
        acked.push(text);
        ids.push(answer.body.result.message_id);
      } else {
        refused.push(text);
        expect(answer.body.parameters).toEqual({ retry_after: 1 });
        await sleep(20);
      }
    }
  };
  const listen = async () => {
    while (busy) {
      await poll(bot, received);
      await sleep(20);
    }
  };
  const traffic = Promise.all([talk(0), talk(1), talk(0), listen()]);
  await sleep(500);
  // The slot moves to another master and back. In between, the other master changes the data of the slot.
  for (const [from, to] of [
    [0, 1],
    [1, 0],
    [0, 2],
  ] as const) {
    await cluster.beginMove(slot, from, to);
    // Calls wait for a limited time while their slot moves, so the move must be short even on a busy machine.
    while (!(await cluster.moveKeys(slot, from, to, 100))) await sleep(1);
    await cluster.endMove(slot, to);
    const before = acked.length;
    await eventually(() => expect(acked.length).toBeGreaterThan(before + 20));
  }
  busy = false;
  await traffic;
  await eventually(async () => {
    await poll(bot, received);
    for (const text of acked) expect(once(received.texts, text)).toBe(1);
  });
  const { texts, ids: shown } = await history(bot);
  for (const text of acked) expect(once(texts, text)).toBe(1);
  for (const text of refused) expect(once([...texts, ...received.texts], text)).toBe(0);
  // Hardly any calls are refused, because calls wait while their slot moves.
  expect(refused.length).toBeLessThanOrEqual(Math.ceil((acked.length + refused.length) / 1_000));
  expect(warned('while its slot migrated')).toBe(true);
  expect(warned('Command queue state error')).toBe(false);
  expect(new Set(ids).size).toBe(ids.length);
  expect(shown).toEqual([...shown].sort((a, b) => a - b));
  expect(received.ids).toEqual([...new Set(received.ids)].sort((a, b) => a - b));
  expect(await cluster.ownerOf(slot)).toBe(2);
  // Each new owner of the slot raised the incarnation of the partition, so the ids skip 10,000 numbers each time.
  expect(Math.max(...ids) - Math.min(...ids)).toBeGreaterThan(30_000);
}, 180_000);

test('while one master is down, only calls on the partitions of this master get 503', async () => {
  const [, dead] = bots;
  const living = bots[2];
  const events = await openEvents(service.fronts[0].url, owner.token);
  await resultOf(say(dead, 'before the end'));
  await sleep(200);
  await cluster.nodes[1]?.kill();
  let round = 0;
  const took: number[] = [];
  const quick = async <T>(call: Promise<T>): Promise<T> => {
    const began = performance.now();
    const result = await call;
    took.push(performance.now() - began);
    return result;
  };
  // A call to the dead master fails after a limited time. Meanwhile, other calls are not delayed.
  const refused = service.bot(dead, 'sendMessage', { chat_id: owner.id, text: 'x' });
  for (const until = performance.now() + 6_500; performance.now() < until; await sleep(20)) {
    const text = `alone ${++round}`;
    await quick(resultOf(service.bot(living, 'sendMessage', { chat_id: owner.id, text })));
    if (round % 50 === 1) await quick(events.received(({ data }) => data.text === text));
    await quick(resultOf(sayInGroup(groups[2], `/out ${round}`)));
  }
  expect((await refused).status).toBe(503);
  expect(round).toBeGreaterThan(20);
  // A call that waits for the dead master takes longer than a second.
  expect(took.sort((a, b) => a - b)[Math.floor(took.length / 2)]).toBeLessThan(1_000);
  for (const front of service.fronts) expect(await readyz(front.url)).toBe(200);
  const received: Heard = { ids: [], texts: [] };
  await eventually(async () => {
    await poll(living, received);
    expect(received.texts).toContain(`/out ${round}`);
  });

  await cluster.nodes[1]?.start();
  await eventually(async () => expect((await say(dead, 'after')).status).toBe(200));
  expect((await history(dead)).texts).toContain('before the end');
  const late: Heard = { ids: [], texts: [] };
  await eventually(async () => {
    await poll(dead, late);
    const out = late.texts.filter((text) => text?.startsWith('/out '));
    expect(out).toEqual(Array.from({ length: round }, (_, i) => `/out ${i + 1}`));
  });
  await eventually(async () => {
    await resultOf(service.bot(living, 'sendMessage', { chat_id: owner.id, text: 'flush' }));
  });
  events.cut();
}, 180_000);

test('after a replica has become master, its partitions continue, and their ids skip 10,000 numbers', async () => {
  const bot = bots[1];
  const before = await resultOf(say(bot, 'to the first master'));
  const replica = await cluster.addReplica(1);
  const position = async (client: typeof replica.client) =>
    /(?:master_repl_offset|slave_repl_offset):(\d+)/.exec(await client.info('replication'))?.[1];
  await eventually(async () =>
    expect(await position(replica.client)).toBe(await position((cluster.nodes[1] as typeof replica).client)),
  );
  await cluster.nodes[1]?.kill();
  const since = performance.now();
  let after: Answer;
  do after = await say(bot, 'to the second');
  while (after.status === 503 && performance.now() - since < 20_000);
  expect(after.status).toBe(200);
  expect(after.body.result.message_id).toBeGreaterThanOrEqual(before.message_id + 10_000);
  await eventually(() =>
    expect(service.fronts.map((front) => front.log()).join('')).toMatch(/none is used twice/),
  );
  const { texts } = await history(bot);
  expect(texts).toContain('to the first master');
  const received: Heard = { ids: [], texts: [] };
  await eventually(async () => {
    await poll(bot, received);
    expect(once(received.texts, 'to the second')).toBe(1);
  });
  const waiting = service.bot(bot, 'getUpdates', { offset: offsets.get(bot.id), timeout: 20 }, 1);
  await sleep(300);
  await resultOf(say(bot, 'wake up'));
  const said = performance.now();
  await resultOf(waiting);
  expect(performance.now() - said).toBeLessThan(10_000);
}, 180_000);
