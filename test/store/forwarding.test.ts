/** Tests that updates for bots in other partitions are neither lost nor doubled nor reordered when a forwarder dies. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import type { ChatRef } from '../../src/store/core/keys.js';
import { eventually, gate } from '../journal/support.js';
import {
  makeBot,
  makeUser,
  type Person,
  poll,
  shown,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let writer: TestNode;
let a: TestNode;
let b: TestNode;
let user: Person;
let bots: Person[];
let group: ChatRef;
let source: number;

const partitionOf = (id: number) => cluster.keys.partitions.of(id);

beforeAll(async () => {
  cluster = await startCluster(4);
});
afterAll(() => cluster.close());

beforeEach(async () => {
  [writer, a, b] = await Promise.all([cluster.node(), cluster.node(), cluster.node()]);
  user = await makeUser(writer);
  do group = await writer.store.chats.create('group', 'Talk', user.id);
  while (partitionOf(group.id) !== 0);
  source = partitionOf(group.id);
  bots = [];
  // Creates two bots in two partitions, neither of which is the partition of the group.
  while (bots.length < 2) {
    const bot = await makeBot(writer, user);
    if ([source, ...bots.map((other) => partitionOf(other.id))].includes(partitionOf(bot.id))) continue;
    await writer.store.chats.putMember(group, { id: bot.id, is_bot: true }, 'member', {});
    // Drops the update in which the bot learns that it was added to the group.
    await writer.store.webhooks.remove(bot.id, true);
    bots.push(bot);
  }
  // This node sends messages but forwards no updates, as if it died after each message.
  writer.hooks.call = (name, run) =>
    name === 'updates/read_outbox' ? Promise.reject(new Error('died')) : run();
});

const send = async (...values: string[]) => {
  for (const value of values) await writer.store.messages.send(group, user.sender, text(value));
};
const outboxLength = () => writer.connection.client.xlen(cluster.keys.outbox(source));

async function expectQueues(...values: string[]): Promise<void> {
  for (const bot of bots) expect(shown(await poll(b, bot))).toEqual(values);
  expect(await outboxLength()).toBe(0);
}

const waitsOn = (node: TestNode, script: string) => {
  const held = gate();
  let done = false;
  node.hooks.call = async (name, run) => {
    if (name === script && !done) {
      done = true;
      await held.wait();
    }
    return run();
  };
  return held;
};

test('if a forwarder dies before any bot has got its updates, the next forwarder delivers all updates once and in order', async () => {
  await send('1', '2');
  a.hooks.call = (name, run) =>
    name === 'updates/accept_forwarded' ? Promise.reject(new Error('died')) : run();
  await expect(a.store.forwarder.forwardAll(source)).rejects.toThrow('died');
  await send('3');
  await b.store.forwarder.forwardAll(source);
  await expectQueues('1', '2', '3');
});

test('if a forwarder dies when only one of two bots has got its updates, both bots get each update once and in order', async () => {
  await send('1', '2', '3');
  let handed = 0;
  a.hooks.call = (name, run) =>
    name === 'updates/accept_forwarded' && ++handed > 1 ? Promise.reject(new Error('died')) : run();
  await expect(a.store.forwarder.forwardAll(source)).rejects.toThrow('died');
  await eventually('one bot has its updates', async () => {
    const lengths = await Promise.all(bots.map(async (bot) => (await poll(b, bot)).length));
    return lengths.sort().join() === '0,3';
  });
  expect(await outboxLength()).toBe(3);
  await send('4');
  await b.store.forwarder.forwardAll(source);
  await expectQueues('1', '2', '3', '4');
});

test('if a forwarder dies before it trims the outbox, no update is queued twice', async () => {
  await send('1', '2');
  a.hooks.call = (name, run) => (name === 'updates/trim_outbox' ? Promise.reject(new Error('died')) : run());
  await expect(a.store.forwarder.forwardAll(source)).rejects.toThrow('died');
  expect(await outboxLength()).toBe(2);
  await send('3');
  await b.store.forwarder.forwardAll(source);
  await expectQueues('1', '2', '3');
});

test('if a forwarder pauses while another forwarder empties the outbox, no update is lost or repeated', async () => {
  await send('1', '2');
  const held = waitsOn(a, 'updates/accept_forwarded');
  const slow = a.store.forwarder.forwardAll(source);
  await held.reached;
  await send('3');
  await b.store.forwarder.forwardAll(source);
  expect(await outboxLength()).toBe(0);
  await send('4', '5');
  held.open();
  await slow;
  // The late trim must not remove updates 4 and 5, unless node `a` has forwarded them.
  await b.store.forwarder.forwardAll(source);
  await expectQueues('1', '2', '3', '4', '5');
});

test('if a forwarder trims the outbox late, it removes no newer entries', async () => {
  await send('1');
  const held = waitsOn(a, 'updates/trim_outbox');
  const slow = a.store.forwarder.forwardAll(source);
  await held.reached;
  await b.store.forwarder.forwardAll(source);
  await send('2');
  held.open();
  await slow;
  expect(await outboxLength()).toBe(1);
  await b.store.forwarder.forwardAll(source);
  await expectQueues('1', '2');
});

test('the sweep forwards the updates of a process that died', async () => {
  await send('1', '2');
  expect(await outboxLength()).toBe(2);
  a.store.sweep.start();
  await eventually('forwarded', async () => (await outboxLength()) === 0);
  await a.store.sweep.stop();
  await expectQueues('1', '2');
});

test('several batches of updates are forwarded in order', async () => {
  const values = Array.from({ length: 230 }, (_, i) => `${i}`);
  await send(...values);
  await Promise.all([a.store.forwarder.forwardAll(source), b.store.forwarder.forwardAll(source)]);
  for (const bot of bots) {
    const first = await poll(a, bot);
    const second = await poll(a, bot, (first.at(-1)?.updateId ?? 0) + 1);
    const third = await poll(a, bot, (second.at(-1)?.updateId ?? 0) + 1);
    expect(shown([...first, ...second, ...third])).toEqual(values);
  }
});

test('if the Redis server of a bot is unavailable, the updates of other bots are not delayed', async () => {
  const [away, there] = bots as [Person, Person];
  const awayAt = cluster.keys.partitions.of(away.id);
  const values = Array.from({ length: limits.outbox_batch_entries_max + 5 }, (_, i) => `${i}`);
  let gone = true;
  a.hooks.call = (name, run, partition) =>
    gone && name === 'updates/accept_forwarded' && partition === awayAt
      ? Promise.reject(new Error('away'))
      : run();
  await send(...values.slice(0, 3));
  await expect(a.store.forwarder.forwardAll(source)).rejects.toThrow('away');
  await send(...values.slice(3));
  expect(await outboxLength()).toBe(values.length);
  // The Redis server of the bot is available again. Newer updates must not overtake the updates that are not forwarded
  // yet.
  gone = false;
  a.store.forwarder.follow(group.id, { forward: true });
  const received: string[] = [];
  let heardUpTo = 0;
  await eventually('the other bot gets all updates', async () => {
    const updates = await poll(b, there, heardUpTo);
    heardUpTo = (updates.at(-1)?.updateId ?? heardUpTo - 1) + 1;
    received.push(...(shown(updates) as string[]));
    return received.length >= values.length;
  });
  expect(received).toEqual(values);
  await a.store.forwarder.forwardAll(source);
  const late: string[] = [];
  let offset = 0;
  while (late.length < values.length) {
    const updates = await poll(b, away, offset);
    if (updates.length === 0) break;
    offset = (updates.at(-1)?.updateId as number) + 1;
    late.push(...(shown(updates) as string[]));
  }
  expect(late).toEqual(values);
  expect(await outboxLength()).toBe(0);
});
