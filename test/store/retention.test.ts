/**
 * Tests that messages and files past the age limit are removed exactly once and do not come back, whether they are in
 * Redis or only in Postgres. Their pins and reactions are removed too. Younger messages and files stay.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { limits } from '../../src/limits.js';
import { day_ms, keepDays, messagesByDay, readSpans } from '../../src/postgres/day_partitions.js';
import { holding } from '../../src/postgres/shards.js';
import { noteStored } from '../../src/postgres/stored_files.js';
import { packMessage, unpackMessage } from '../../src/store/core/codec.js';
import { type ChatRef, directChat, sharedChat } from '../../src/store/core/keys.js';
import type { StoredMessage } from '../../src/store/core/stored_message.js';
import {
  chatKeys,
  evict,
  hotTtlMs,
  makeBot,
  makeUser,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
let ann: Person;
let bot: Person;

beforeAll(async () => {
  cluster = await startCluster();
  node = await cluster.node();
  ann = await makeUser(node);
  bot = await makeBot(node, ann);
});
afterAll(() => cluster?.close());

/** Makes the next pass of retention due immediately. */
const rested = () => node.db.query("update retention set ended_at = 'epoch'");

async function pass(ageMs: number, on: TestNode = node): Promise<number> {
  let removed = 0;
  for (;;) {
    const step = await on.store.retention.messages(ageMs);
    removed += step?.removed ?? 0;
    if (!step?.more) return removed;
  }
}

const idsOf = (messages: readonly StoredMessage[] | null) => messages?.map(({ id }) => id);

/** An age limit that every message sent so far exceeds. */
const any = -1_000;

async function aged() {
  const chat = directChat(bot.id, (await makeUser(node)).id);
  await node.store.chats.openDirect(chat.id, chat.user);
  const send = async (words: string) => (await node.store.messages.send(chat, bot.sender, text(words))).id;
  const [cold, hot] = [await send('cold'), await send('hot')];
  await cluster.flush();
  await evict(node, cluster.keys.message(chat, cold));
  return { chat, cold, hot, send };
}

test('history, forwards and pins no longer contain messages past the age limit', async () => {
  const { chat, cold, hot, send } = await aged();
  // Waits two seconds before the next message, because the dates of messages are whole seconds.
  await sleep(2_100);
  const border = Date.now() - 1_000;
  const age = () => Date.now() - border;
  const young = await send('young');
  await cluster.flush();
  await node.store.pins.pin(chat, bot.sender, cold, false);
  const service = (await node.store.chats.find(chat))?.newest ?? 0;
  expect(await pass(age())).toBe(2);
  const look = async () => {
    expect(idsOf(await node.store.history.list(chat, 0, 10))).toEqual([service, young]);
    const read = await node.store.messages.readMany(chat, bot.sender, [cold, hot, young]);
    expect(read.map((each) => each?.id ?? null)).toEqual([null, null, young]);
    expect((await node.store.chats.find(chat))?.pinned).toBe(0);
  };
  await look();
  await cluster.flush();
  // The tombstone stays in Redis for as long as a flushed record does, because Postgres may be restored to a time
  // before the removal.
  expect(await node.connection.client.pttl(cluster.keys.message(chat, cold))).toBeLessThanOrEqual(hotTtlMs);
  await evict(node, ...chatKeys(cluster.keys, chat, cold, hot, young));
  await look();
  await expect(node.store.pins.pin(chat, bot.sender, cold, false)).rejects.toMatchObject({
    kind: 'message_to_pin_not_found',
  });
  expect(await pass(age())).toBe(0);
});

test.each([
  ['ahead', 1],
  ['behind', -1],
])(
  'if the clock of a machine is an hour %s, files are still removed by the time of Redis',
  async (_, hours) => {
    const hour = 3_600_000;
    const present = Date.now();
    const removed: string[] = [];
    const files = {
      list: async () => [
        { key: 'old', at: present - 24.5 * hour },
        { key: 'young', at: present - 23.5 * hour },
      ],
      remove: async (key: string) => removed.push(key) > 0,
    };
    await rested();
    vi.useFakeTimers({ toFake: ['Date'], now: present + hours * hour });
    try {
      expect(await node.store.retention.files(24 * hour, files)).toEqual({ removed: 1, more: false });
    } finally {
      vi.useRealTimers();
    }
    expect(removed).toEqual(['old']);
  },
);

test('a read-back in progress does not restore a removed message', async () => {
  const { chat, cold } = await aged();
  const other = await cluster.node();
  let held: (() => void) | undefined;
  const reached = new Promise<void>((resolve) => {
    other.hooks.query = async (sql, run) => {
      const rows = await run();
      if (!sql.includes('from messages')) return rows;
      resolve();
      await new Promise<void>((go) => {
        held = go;
      });
      return rows;
    };
  });
  const pin = other.store.pins.pin(chat, bot.sender, cold, false);
  await reached;
  await rested();
  expect(await pass(any)).toBeGreaterThanOrEqual(2);
  other.hooks.query = (_, run) => run();
  held?.();
  await expect(pin).rejects.toMatchObject({ kind: 'message_to_pin_not_found' });
  expect((await node.store.messages.readMany(chat, bot.sender, [cold]))[0]).toBe(null);
});

test('a post is removed with its message and its reactions', async () => {
  const owner = await makeUser(node);
  const channel = await node.store.chats.create('channel', 'News', owner.id, { private: false });
  const { record } = await node.store.messages.send(channel, owner.sender, text('post'));
  const reactor = await node.store.users.find(ann.id);
  if (!reactor) throw new Error('nobody');
  await node.store.posts.react(record.post, reactor, { what: 'set', emoji: '👍' });
  await cluster.flush();
  await rested();
  expect(await pass(any)).toBeGreaterThan(0);
  const look = () => node.store.posts.find(record.post, { id: ann.id, isBot: false });
  await expect(look()).rejects.toMatchObject({ kind: 'post_not_found' });
  await expect(
    node.store.posts.react(record.post, reactor, { what: 'set', emoji: '🔥' }),
  ).rejects.toMatchObject({ kind: 'post_not_found' });
  await cluster.flush();
  await evict(node, cluster.keys.post(record.post), ...chatKeys(cluster.keys, channel, 1));
  await expect(look()).rejects.toMatchObject({ kind: 'post_not_found' });
});

test('only one process at a time removes old messages', async () => {
  const { chat } = await aged();
  const other = await cluster.node();
  await rested();
  let calls = 0;
  other.hooks.call = async (name, run) => {
    if (name === 'messages/erase' && ++calls === 1) {
      expect(await node.store.retention.messages(any)).toBe(null);
      throw new Error('the process dies');
    }
    return run();
  };
  await expect(pass(any, other)).rejects.toThrow('the process dies');
  expect(await pass(any)).toBeGreaterThanOrEqual(2);
  expect(idsOf(await node.store.history.list(chat, 0, 10))).toEqual([]);
  expect(await node.store.retention.messages(any)).toBe(null);
});

test('all old messages in a chat are removed, even if this takes more than one batch', async () => {
  const group = await node.store.chats.create('group', 'Long', ann.id);
  const all = 2 * limits.messages_batch_max + 30;
  for (let n = 0; n < all; n += limits.messages_batch_max) {
    const batch = Array.from({ length: Math.min(limits.messages_batch_max, all - n) }, () => text('x'));
    await node.store.messages.sendMany(group, ann.sender, batch);
  }
  await cluster.flush();
  await rested();
  expect(await pass(any)).toBeGreaterThanOrEqual(all);
  expect(await node.store.history.list(group, 0, 10)).toEqual([]);
  await cluster.flush();
  const left = await node.written.query('select 1 from messages where chat_id = $1 and record is not null', [
    group.id,
  ]);
  expect(left).toEqual([]);
  expect(await node.store.history.list(sharedChat(group.id), 0, 10)).toEqual([]);
});

test('old files are removed, except pictures of bots and people, current photos of chats, stickers and files of scheduled posts', async () => {
  const hour = 3_600_000;
  const key = (n: number) => n.toString(16).padStart(32, '0');
  const all = Array.from({ length: limits.retention_batch_max + 20 }, (_, n) => ({
    key: key(n),
    at: Date.now() - (n % 2 === 0 ? 2 : 0) * hour,
  }));
  const picture = { key: key(4), size: 1, width: 1, height: 1 };
  const small = { ...picture, key: key(6) };
  await node.store.pictures.set(ann.id, bot.id, 'avatar', [picture, small]);
  await node.store.profiles.setAvatar(ann.id, [
    { ...picture, key: key(24) },
    { ...picture, key: key(26) },
  ]);
  const group = await node.store.chats.create('group', 'Files', ann.id);
  const setPhoto = (n: number) =>
    node.store.chats.setPhoto(group, { id: ann.id, is_bot: false }, [{ ...picture, key: key(n) }], []);
  await setPhoto(8);
  await setPhoto(10);
  const sticker = { ...picture, key: key(12), mime: 'image/png', emoji: ['😺'], keywords: [] };
  const stickers = [sticker, { ...sticker, key: key(14) }, { ...sticker, key: key(16) }];
  await node.store.stickerSets.add({ bot: bot.id, name: 'aging', title: 'T', stickers });
  await node.store.stickerSets.take(bot.id, 'aging', key(14));
  const channel = await node.store.chats.create('channel', 'News', ann.id);
  const post = { content: { text: 'x' }, files: [key(22)] };
  await node.store.scheduledPosts.add(channel, ann.id, post, Math.floor(Date.now() / 1_000) + 3_600);
  // Each upload records its file before it writes the file. Three files were recorded but never written: the files with
  // the first and the last key, and a young file.
  const [early, late, young] = ['0'.padStart(31, '0'), 'f'.repeat(32), 'e'.repeat(32)];
  for (const each of [...all.map((file) => file.key), early, late, young])
    await noteStored(node.db, ann.id, each, 1, Number.MAX_SAFE_INTEGER);
  await node.db.query("update stored_files set created_at = now() - interval '2 hours' where key <> $1", [
    young,
  ]);
  const removed: string[] = [];
  // While the pass removes file 18, a bot adds an old file to its sticker set. The pass has already checked the batch
  // that contains this file.
  const added = { ...sticker, key: key(20) };
  const files = {
    list: async (after: string, limit: number) => all.filter((file) => file.key > after).slice(0, limit),
    async remove(which: string) {
      if (which === key(18) && !removed.includes(which))
        await node.store.stickerSets.append(bot.id, 'aging', added);
      return removed.push(which) > 0;
    },
  };
  const first = await node.store.retention.files(hour, files);
  expect(first?.more).toBe(true);
  const second = await node.store.retention.files(hour, files);
  expect(second?.more).toBe(false);
  const wanted = all.filter(
    ({ at }, n) => at < Date.now() - hour && ![4, 6, 10, 12, 16, 20, 22, 24, 26].includes(n),
  );
  expect(removed).toEqual([early, ...wanted.map((file) => file.key), late]);
  expect([first?.removed, second?.removed].map(Number).reduce((a, b) => a + b)).toBe(wanted.length);
  expect(await node.store.retention.files(hour, files)).toBe(null);
});

/** Makes one partition per day for the last ten days, and drops the previous partitions with their rows. */
async function divide(): Promise<void> {
  for (const name of await spanNames()) await node.written.query(`drop table ${name}`);
  await node.written.query('delete from messages');
  const today = Math.floor(Date.now() / day_ms);
  for (let day = today - 10; day < today; day++) {
    const [from, to] = [day, day + 1].map((each) => new Date(each * day_ms).toISOString().slice(0, 10));
    const name = `messages_${from}_${to}`.replaceAll('-', '');
    await node.written.query(
      `create table ${name} partition of messages for values from ('${from}') to ('${to}')`,
    );
  }
  for (const { pool } of holding(node.shards))
    await keepDays(pool, Number.POSITIVE_INFINITY, messagesByDay(3));
}

async function backdate(chat: ChatRef, days: number, ...ids: number[]): Promise<void> {
  await cluster.flush();
  for (const id of ids) {
    const at = [chat.id, chat.user, id];
    const [row] = await node.written.query<{ record: Buffer }>(
      'select record from messages where chat_id = $1 and user_id = $2 and message_id = $3',
      at,
    );
    const record = unpackMessage(row?.record as Buffer);
    await node.written.query(
      `update messages set record = $4, day = day - $5::int where chat_id = $1 and user_id = $2 and message_id = $3`,
      [...at, packMessage({ ...record, date: record.date - days * 86_400 }), days],
    );
  }
  await evict(node, ...chatKeys(cluster.keys, chat, ...ids));
}

async function spanNames(): Promise<string[]> {
  const all = await Promise.all(
    holding(node.shards).map(async ({ pool }) => (await readSpans(pool, { table: 'messages' })).spans),
  );
  const names = all.map((spans) => spans.map(({ name }) => name));
  for (const each of names) expect(each).toEqual(names[0]);
  return names[0] ?? [];
}

async function spanNamesOf(chat: ChatRef): Promise<string[]> {
  const { pool } = node.shards.of(cluster.keys.partitions.of(chat.id));
  return (await readSpans(pool, { table: 'messages' })).spans.map(({ name }) => name);
}

test('a partition of messages is dropped with its pins and posts when its whole day is past the age limit', async () => {
  await divide();
  const owner = await makeUser(node);
  const chat = directChat(bot.id, (await makeUser(node)).id);
  await node.store.chats.openDirect(chat.id, chat.user);
  const send = async (words: string) => (await node.store.messages.send(chat, bot.sender, text(words))).id;
  const [old, pinned, edge, young] = [
    await send('old'),
    await send('pinned'),
    await send('edge'),
    await send('young'),
  ];
  await node.store.pins.pin(chat, bot.sender, pinned, false);
  const service = (await node.store.chats.find(chat))?.newest ?? 0;
  const channel = await node.store.chats.create('channel', 'News', owner.id, { private: false });
  const { record, id: post } = await node.store.messages.send(channel, owner.sender, text('post'));
  const reactor = await node.store.users.find(ann.id);
  if (!reactor) throw new Error('nobody');
  await node.store.posts.react(record.post, reactor, { what: 'set', emoji: '👍' });
  const group = await node.store.chats.create('group', 'Old', owner.id);
  const { id: said } = await node.store.messages.send(group, owner.sender, text('said'));
  await backdate(chat, 5, old, pinned);
  await backdate(chat, 3, edge);
  await backdate(channel, 5, post);
  await backdate(group, 5, said);
  await evict(node, cluster.keys.post(record.post));
  const before = await spanNames();
  await node.written.query('create table deletions (n int)');
  await node.written.query(`create function note_deletion() returns trigger language plpgsql as
    $$ begin insert into deletions values (1); return old; end $$`);
  await node.written.query(
    'create trigger noted after delete on messages for each row execute function note_deletion()',
  );
  await rested();
  // The partition of the message `edge` stays. Its day ended less than three days ago, so some of its messages can be
  // too young to be removed.
  await pass(3 * day_ms);
  const after = await spanNames();
  expect(before.filter((name) => !after.includes(name))).toEqual(before.slice(0, 7));
  const look = async () => {
    const shown = idsOf(await node.store.history.list(chat, 0, 10));
    expect(shown).toEqual([service, young, edge]);
    expect((await node.store.chats.find(chat))?.pinned).toBe(0);
    const read = await node.store.messages.readMany(chat, bot.sender, [old, pinned, young]);
    expect(read.map((each) => each?.id ?? null)).toEqual([null, null, young]);
    expect(idsOf(await node.store.history.list(group, 0, 10))).not.toContain(said);
    await expect(node.store.posts.find(record.post, { id: ann.id, isBot: false })).rejects.toMatchObject({
      kind: 'post_not_found',
    });
  };
  await look();
  await cluster.flush();
  await evict(
    node,
    cluster.keys.post(record.post),
    ...chatKeys(cluster.keys, chat, old, pinned, edge, young),
  );
  await look();
  expect(await node.written.query('select from deletions')).toEqual([]);
  await rested();
  expect(await pass(3 * day_ms)).toBe(0);
});

test('if an old message is written after its daily partition was dropped, its row is deleted separately', async () => {
  await divide();
  const { chat, cold, hot } = await aged();
  await backdate(chat, 40, cold);
  expect(await node.written.query('select from messages_default')).toHaveLength(1);
  await rested();
  expect(await pass(3 * day_ms)).toBe(1);
  await cluster.flush();
  await evict(node, ...chatKeys(cluster.keys, chat, cold, hot));
  expect(idsOf(await node.store.history.list(chat, 0, 10))).toEqual([hot]);
});

test('if another session has locked a partition, a later pass of retention drops the partition', async () => {
  await divide();
  const { chat, cold, send } = await aged();
  await backdate(chat, 8, cold);
  const other = await cluster.node();
  let free = () => {};
  const held = new Promise<void>((resolve) => {
    free = resolve;
  });
  let begun = () => {};
  const reading = new Promise<void>((resolve) => {
    begun = resolve;
  });
  // Like a backup, this reader locks the table. The timeout is off, because Postgres would end the idle transaction
  // after 10 s, and a busy machine may need longer for the pass.
  const reader = other.shards.of(cluster.keys.partitions.of(chat.id)).db.transaction(async (sql) => {
    await sql.query('set local idle_in_transaction_session_timeout = 0');
    await sql.query('select from messages');
    begun();
    await held;
  });
  await reading;
  const before = await spanNamesOf(chat);
  await rested();
  // For each of the three oldest partitions, the pass waits a second for the lock of the reader.
  const passing = pass(7 * day_ms);
  for (let n = 0; n < 20; n++) await send('more');
  await cluster.flush();
  await passing;
  expect(await spanNamesOf(chat)).toEqual(before);
  free();
  await reader;
  await rested();
  await pass(7 * day_ms);
  expect((await spanNamesOf(chat)).length).toBeLessThan(before.length);
  await evict(node, ...chatKeys(cluster.keys, chat, cold));
  expect(idsOf(await node.store.history.list(chat, 0, 100))).not.toContain(cold);
});
