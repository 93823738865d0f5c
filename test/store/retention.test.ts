/** What is past its age goes, hot or cold, with its pins and reactions, once and for good; what is younger stays. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { limits } from '../../src/limits.js';
import { directChat, sharedChat } from '../../src/store/core/keys.js';
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

/** So that the next pass may begin. */
const rested = () => node.db.query("update retention set ended_at = 'epoch'");

/** A pass to its end; returns how many it removed. */
async function pass(ageMs: number, on: TestNode = node): Promise<number> {
  let removed = 0;
  for (;;) {
    const step = await on.store.retention.messages(ageMs);
    removed += step?.removed ?? 0;
    if (!step?.more) return removed;
  }
}

const idsOf = (messages: readonly StoredMessage[] | null) => messages?.map(({ id }) => id);

/** Past this age is all that was sent so far. */
const any = -1_000;

/** A chat with a cold and a hot message. */
async function aged() {
  const chat = directChat(bot.id, (await makeUser(node)).id);
  await node.store.chats.openDirect(chat.id, chat.user);
  const send = async (words: string) => (await node.store.messages.send(chat, bot.sender, text(words))).id;
  const [cold, hot] = [await send('cold'), await send('hot')];
  await cluster.flush();
  await evict(node, cluster.keys.message(chat, cold));
  return { chat, cold, hot, send };
}

test('old messages are gone from history, forwards and pins, and a read-back finds none', async () => {
  const { chat, cold, hot, send } = await aged();
  // Dates of messages are whole seconds.
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
  // A tombstone stays for the hot time, in case Postgres goes back.
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
  'a machine whose clock is an hour %s removes what Redis says is old, and nothing younger',
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

test('a read-back that was under way does not bring a message back', async () => {
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

test('a post goes with its message and takes the reactions along', async () => {
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

test('one process at a time walks, one that dies is followed, and the next pass waits', async () => {
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

test('a chat of more than one batch is walked to its end', async () => {
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

test('old files go, but not the pictures of bots; the walk goes on behind what it has seen', async () => {
  const hour = 3_600_000;
  const key = (n: number) => n.toString(16).padStart(32, '0');
  const all = Array.from({ length: limits.retention_batch_max + 20 }, (_, n) => ({
    key: key(n),
    at: Date.now() - (n % 2 === 0 ? 2 : 0) * hour,
  }));
  const picture = { key: key(4), size: 1, width: 1, height: 1 };
  const small = { ...picture, key: key(6) };
  await node.store.pictures.set(ann.id, bot.id, 'avatar', [picture, small]);
  const removed: string[] = [];
  const files = {
    list: async (after: string, limit: number) => all.filter((file) => file.key > after).slice(0, limit),
    remove: async (which: string) => removed.push(which) > 0,
  };
  const first = await node.store.retention.files(hour, files);
  expect(first?.more).toBe(true);
  const second = await node.store.retention.files(hour, files);
  expect(second?.more).toBe(false);
  const wanted = all.filter(({ at }, n) => at < Date.now() - hour && n !== 4 && n !== 6);
  expect(removed).toEqual(wanted.map((file) => file.key));
  expect(await node.store.retention.files(hour, files)).toBe(null);
});
