/** Tests that a queue opens with the current settings in Postgres, even if Redis loses the queue at the same time. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { loadQueueSettings } from '../../src/postgres/webhooks/webhooks.js';
import { directChat } from '../../src/store/core/keys.js';
import { gate } from '../journal/support.js';
import { makeBot, makeUser, startCluster, type TestCluster, type TestNode, text } from '../support/store.js';

let cluster: TestCluster;
let a: TestNode;
let b: TestNode;

beforeAll(async () => {
  cluster = await startCluster(2);
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
});
afterAll(() => cluster.close());

const settings = {
  ...{ url: 'https://203.0.113.9/x', secretToken: null, certificate: null },
  ...{ maxConnections: 40, address: '203.0.113.9' },
};

test('after Redis loses its last writes, a node cannot open a queue with webhook settings that it read before the loss', async () => {
  const person = await makeUser(a);
  const bot = await makeBot(a, await makeUser(a));
  const chat = directChat(bot.id, person.id);
  await a.store.chats.openDirect(bot.id, person.id);
  const [state, meta] = [a.keys.queueState(bot.id), a.keys.meta(a.keys.partitions.of(bot.id))];
  const { client } = a.connection;
  await client.del(state);
  const held = gate();
  // The node has read from Postgres that there is no webhook, and is about to open the queue.
  b.hooks.query = async (query, run) => {
    const rows = await run();
    if (/\bwebhooks\b/.test(query)) await held.wait();
    return rows;
  };
  const sending = b.store.messages.send(chat, person.sender, text('x'));
  await held.reached;
  await a.store.webhooks.set(bot.id, settings, { drop: false, mask: 1 });
  // Simulates a crash of Redis: the queue is lost, and the incarnation of the partition is raised.
  await client.del(state);
  await client.hincrby(meta, 'ver', limits.versions_per_incarnation);
  held.open();
  await sending;
  const { hook } = await loadQueueSettings(a.db, bot.id);
  expect(await client.hmget(state, 'hook')).toEqual([String(hook)]);
});
