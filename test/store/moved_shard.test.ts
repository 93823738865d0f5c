/**
 * Tests a node whose machine was suspended. The clock of the node stood still meanwhile, so the node still trusts an
 * outdated shard map. The database from which a partition has moved refuses this node’s statements about the partition.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  chatKeys,
  evict,
  makeDirect,
  poll,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;

beforeAll(async () => {
  cluster = await startCluster(2, 2);
  node = await cluster.node();
});
afterAll(() => cluster?.close());

test('a node with an outdated shard map assigns no message id twice', async () => {
  const { bot, chat } = await makeDirect(node);
  const send = async (words: string) => (await node.store.messages.send(chat, bot.sender, text(words))).id;
  const ids = [await send('one'), await send('two')];
  await poll(node, bot);
  await cluster.flush();
  const cold = () => evict(node, ...chatKeys(cluster.keys, chat, ...ids));
  await cold();
  expect((await node.store.history.list(chat, 0, 10))?.map(({ id }) => id)).toEqual(
    expect.arrayContaining(ids),
  );
  await cold();
  // The partition was moved, and its rows in the former database are deleted.
  const partition = cluster.keys.partitions.of(chat.id);
  const { db } = node.shards.of(partition);
  await db.query('update partitions set left_at = now(), outdated = true where partition = $1', [partition]);
  const rows = await db.query<{ table: string }>(
    'delete from messages returning tableoid::regclass as table',
  );
  expect(rows.length).toBeGreaterThan(1);
  await db.query('delete from chat_sequences');
  const unavailable = { kind: 'unavailable' };
  await expect(send('three')).rejects.toMatchObject(unavailable);
  await expect(node.store.history.list(chat, 0, 10)).rejects.toMatchObject(unavailable);
  await expect(node.store.messages.readMany(chat, bot.sender, ids)).rejects.toMatchObject(unavailable);
  const attempts = node.store.attempts.append(
    [],
    new Map([[bot.id, { delivered: 1, failed: 0, dead: 0, unkept: 0 }]]),
  );
  await expect(attempts).rejects.toMatchObject(unavailable);
  expect(await db.query('select from delivery_counts')).toEqual([]);
});
