/**
 * Tests a journal at its high-water mark: it refuses calls that add data, but has a reserve for deletions and
 * deliveries.
 */

import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { journalState } from '../../src/journal/state.js';
import { makeDirect, poll, startCluster, type TestCluster, type TestNode, text } from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
beforeAll(async () => {
  cluster = await startCluster(1);
  node = await cluster.node();
});
afterAll(() => cluster.close());

test('messages can be deleted and unpinned while the journal is full', async () => {
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
  await client.hset(cluster.keys.meta(0), 'hw', 10_000);
});

test('a bot with routes can poll while the journal is full, unless the poll changes the update kinds of the bot', async () => {
  const { user, bot, chat } = await makeDirect(node);
  const { polls, webhooks, messages } = node.store;
  const { client } = node.connection;
  const asks = (mask: number) => ({ offset: 0, limit: 100, timeout: 0, mask, onGone: () => undefined });
  await webhooks.setRoute(bot.id, {
    ...{ url: 'https://203.0.113.9/x', secretToken: null, certificate: null, maxConnections: 40 },
    ...{ address: '203.0.113.9', retry: null, name: 'edits', mask: 2, chats: null, percent: 100 },
    ...{ position: null, drop: false },
  });
  await polls.poll(bot.id, asks(5));
  await messages.send(chat, user.sender, text('heard'));
  await client.hset(cluster.keys.meta(0), 'hw', await client.xlen(cluster.keys.journal(0)));
  const consumer = { name: 'one', leaseMs: 5_000 };
  await expect(polls.poll(bot.id, asks(1))).rejects.toMatchObject({ kind: 'too_many_requests' });
  for (const request of [asks(5), { ...asks(5), consumer }]) {
    const found = await polls.poll(bot.id, request);
    expect(found.map(({ message }) => message.record.content.text)).toEqual(['heard']);
  }
  await client.hset(cluster.keys.meta(0), 'hw', 10_000);
});

const entriesOf = (client: Redis) => client.xrange(cluster.keys.journal(0), '-', '+');
const sizeOf = (fields: readonly string[]) =>
  fields.reduce((sum, field, i) => sum + (i % 2 === 1 ? Buffer.byteLength(field, 'latin1') : 0), 0);

async function bytesHeld(client: Redis): Promise<number> {
  const raw = (await client.callBuffer('XRANGE', cluster.keys.journal(0), '-', '+')) as [Buffer, Buffer[]][];
  return raw.reduce((sum, [, fields]) => sum + sizeOf(fields.map((field) => field.toString('latin1'))), 0);
}
const bytesReported = async () => (await journalState(node))[0]?.bytes;

const settle = (after: string) =>
  node.runner.call(
    'journal/settle',
    0,
    { meta: cluster.keys.meta(0), journal: cluster.keys.journal(0), entities: [] },
    { after, hot_ms: 3_600_000, records: 0, brief: 0, versions: [] },
  );

test('a journal at its byte limit refuses new messages but accepts deletions', async () => {
  const { bot, chat } = await makeDirect(node);
  const { messages } = node.store;
  const { client } = node.connection;
  const first = await messages.send(chat, bot.sender, text('x'.repeat(4_000)));
  const bound = await bytesHeld(client);
  await client.hset(cluster.keys.meta(0), 'hwb', bound);
  const refused = messages.send(chat, bot.sender, text('no'));
  await expect(refused).rejects.toMatchObject({ kind: 'too_many_requests', retryAfter: 1 });
  expect(await bytesHeld(client)).toBe(bound);
  await messages.remove(chat, bot.sender, first.id);
  await client.hset(cluster.keys.meta(0), 'hwb', Math.floor((await bytesHeld(client)) / 2));
  const over = messages.removeMany(chat, bot.sender, [first.id]);
  await expect(over).rejects.toMatchObject({ kind: 'too_many_requests' });
  // After a flush, the journal accepts new messages again.
  await settle(`${(await entriesOf(client)).at(-1)?.[0]}`);
  await messages.send(chat, bot.sender, text('yes'));
  await client.hset(cluster.keys.meta(0), 'hwb', 64 * 1024 ** 2);
});

test('the byte count of the journal stays exact, however often and in whatever order entries are trimmed', async () => {
  const { user, bot, chat } = await makeDirect(node);
  const { messages, pins } = node.store;
  const { client } = node.connection;
  const meta = cluster.keys.meta(0);
  for (let round = 0; round < 20; round++) {
    const sent = await Promise.all(
      [1, 7, 300, 4_000].map((length) => messages.send(chat, bot.sender, text('y'.repeat(length)))),
    );
    await pins.pin(chat, bot.sender, sent[0]?.id as number, false);
    const edit = { what: 'text', content: { text: `edited ${round}` }, markup: null } as const;
    await messages.edit(chat, bot.sender, sent[1]?.id as number, edit).catch(() => undefined);
    await messages.remove(chat, user.sender, sent[2]?.id as number);
    expect(await bytesReported()).toBe(await bytesHeld(client));
    const ids = (await entriesOf(client)).map(([id]) => id);
    const pick = () => ids[Math.floor(Math.random() * ids.length)] as string;
    // Trims the journal at three positions, as if one of two flushers of the partition were late.
    for (const after of [pick(), pick(), ids[0] as string]) {
      await settle(after);
      expect(await bytesReported()).toBe(await bytesHeld(client));
    }
  }
  // Falsifies the byte count of the journal. The count must become exact again when all counted entries have been
  // trimmed.
  await client.hincrby(meta, 'jw', 1_000_000);
  await client.hset(meta, 'jt', 3);
  await messages.send(chat, bot.sender, text('after'));
  await settle((await entriesOf(client)).at(-1)?.[0] as string);
  expect(await bytesReported()).toBe(await bytesHeld(client));
  await client.hdel(meta, 'jw', 'jt');
  await messages.send(chat, bot.sender, text('anew'));
  await settle((await entriesOf(client)).at(-1)?.[0] as string);
  expect(await bytesReported()).toBe(await bytesHeld(client));
});
