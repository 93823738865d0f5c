/** A journal at its high-water mark refuses what grows; deletions and deliveries have a reserve. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeDirect, poll, startCluster, type TestCluster, type TestNode, text } from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
beforeAll(async () => {
  cluster = await startCluster(1);
  node = await cluster.node();
});
afterAll(() => cluster.close());

test('messages are deleted, unpinned and polled while the journal is full', async () => {
  const { user, bot, chat } = await makeDirect(node);
  const { messages, pins } = node.store;
  const [first, second] = await Promise.all([
    messages.send(chat, bot.sender, text('first')),
    messages.send(chat, bot.sender, text('second')),
  ]);
  await pins.pin(chat, bot.sender, first.id, false);
  await messages.send(chat, user.sender, text('heard'));
  const { client } = node.connection;
  const length = await client.xlen(cluster.keys.journal(0));
  await client.hset(cluster.keys.meta(0), 'hw', length);
  const refused = messages.send(chat, bot.sender, text('no'));
  await expect(refused).rejects.toMatchObject({ kind: 'too_many_requests' });
  await pins.unpin(chat, bot.sender, first.id);
  await messages.remove(chat, bot.sender, first.id);
  await messages.removeMany(chat, bot.sender, [second.id]);
  expect(await client.xlen(cluster.keys.journal(0))).toBe(length + 3);
  const updates = await poll(node, bot);
  expect(updates.at(-1)?.message.record.content.text).toBe('heard');
  await client.hset(cluster.keys.meta(0), 'hw', Math.floor(length / 2));
  const third = messages.remove(chat, user.sender, first.id + 2);
  await expect(third).rejects.toMatchObject({ kind: 'too_many_requests' });
});
