/** Tests a Redis that is killed and started with an older append-only file. No id or version is assigned twice. */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import type { User } from '../../src/store/core/control.js';
import { sharedChat } from '../../src/store/core/keys.js';
import { eventually, gate } from '../journal/support.js';
import { expectSameRows } from '../support/rows.js';
import {
  chatKeys,
  evict,
  makeBot,
  makeDirect,
  makeUser,
  poll,
  shown,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
let made: Awaited<ReturnType<typeof makeDirect>>;

beforeEach(async () => {
  cluster = await startCluster(2);
  node = await cluster.node();
  made = await makeDirect(node);
});
afterEach(() => cluster.close());

const files = () => join(cluster.redis.dir, 'appendonlydir');
const copy = () => join(cluster.redis.dir, 'copy');
const remember = () => cpSync(files(), copy(), { recursive: true });

/** Kills Redis, and starts it with the append-only file that `remember` saved. */
async function loseTail(): Promise<void> {
  const before = node.connection.runId();
  await cluster.redis.stop('SIGKILL');
  rmSync(files(), { recursive: true });
  cpSync(copy(), files(), { recursive: true });
  await cluster.redis.start();
  await eventually('connected anew', () => ![null, before].includes(node.connection.runId()));
}

const send = (value: string) => node.store.messages.send(made.chat, made.user.sender, text(value));
const edit = (id: number, value: string) =>
  node.store.messages.edit(made.chat, made.user.sender, id, {
    what: 'text',
    content: { text: value },
    markup: null,
  });
const reactor = (n: number): User => ({
  id: 7_000_000_000 + n,
  externalId: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  ...{
    firstName: 'P',
    lastName: null,
    username: null,
    languageCode: null,
    tokens: [],
    addToGroups: 'everyone' as const,
    startChats: 'everyone' as const,
    avatar: [],
  },
});
const partition = () => cluster.keys.partitions.of(made.bot.id);
const version = async () => Number(await node.connection.client.hget(cluster.keys.meta(partition()), 'ver'));
const skip = limits.incarnation_sequence_skip + 1;

test('after Redis loses its latest writes, new message ids, update ids and versions are above all earlier ones', async () => {
  const ids = [(await send('kept')).id];
  const [kept] = await poll(node, made.bot);
  remember();
  for (let i = 0; i < 5; i++) ids.push((await send(`lost ${i}`)).id);
  const lost = await poll(node, made.bot);
  const [versionBefore, updatesBefore] = [await version(), lost.map((update) => update.updateId)];
  expect(ids).toEqual([1, 2, 3, 4, 5, 6]);
  expect(updatesBefore).toHaveLength(6);

  await loseTail();
  expect(shown(await poll(node, made.bot))).toEqual(['kept']);
  const after = [await send('again'), await send('and again')];
  expect(after.map((message) => message.id)).toEqual([1 + skip, 2 + skip]);
  const updates = (await poll(node, made.bot)).slice(1).map((update) => update.updateId);
  const first = kept?.updateId ?? 0;
  expect(updates).toEqual([first + skip, first + skip + 1]);
  expect(Math.min(...updates)).toBeGreaterThan(Math.max(...updatesBefore));
  const raised = await version();
  expect(raised).toBeGreaterThan(versionBefore);
  expect(Math.floor(raised / limits.versions_per_incarnation)).toBe(2);
});

test('if Postgres has an incarnation of a partition that is newer than any that Redis used, a new chat skips no ids', async () => {
  await node.written.query('update partitions set incarnation = incarnation + 1');
  const { chat, user } = await makeDirect(node);
  const next = async () => (await node.store.messages.send(chat, user.sender, text('x'))).id;
  expect([await next(), await next()]).toEqual([1, 2]);
  await cluster.flush();
  await evict(node, ...chatKeys(cluster.keys, chat));
  expect(await next()).toBe(3);
  remember();
  const lost = await next();
  await loseTail();
  expect(await next()).toBe(lost - 1 + skip);
});

test('after Redis loses its latest writes, ids that had reached Postgres are not given out again', async () => {
  await send('kept');
  remember();
  await send('flushed and lost');
  await cluster.flush();
  await loseTail();
  const { id } = await send('again');
  expect(id).toBe(2 + skip);
  await cluster.flush();
  const rows = await node.written.query<{ message_id: number; version: number }>(
    'select message_id, version from messages order by version',
  );
  expect(rows.map((row) => row.message_id)).toEqual([1, 2, 2 + skip]);
});

test('after Redis loses its latest writes, messages, edits, deletions, pins and reactions are restored from Postgres', async () => {
  const { chat, user } = made;
  const channel = await node.store.chats.create('channel', 'News', user.id);
  const post = (await node.store.messages.send(channel, user.sender, text('post'))).record.post;
  const [early, late] = [reactor(1), reactor(2)];
  await node.store.posts.react(post, early, { what: 'set', emoji: '👍' });
  const [first, second, third] = [await send('first'), await send('second'), await send('third')];
  await node.store.pins.pin(chat, user.sender, first.id, false);
  await cluster.flush();
  remember();
  await edit(second.id, 'second, edited');
  await node.store.messages.remove(chat, user.sender, third.id);
  await send('lost');
  await node.store.pins.pin(chat, user.sender, second.id, false);
  await node.store.posts.react(post, late, { what: 'set', emoji: '👍' });
  await cluster.flush();
  await loseTail();

  // No change has raised the incarnation of the partition yet, because this read is the first access after the loss.
  const shownNow = async () =>
    (await node.store.history.list(chat, 0, 10))?.map(({ record }) => record.content.text ?? 'service');
  expect(await shownNow()).toEqual(['service', 'lost', 'service', 'second, edited', 'first']);
  const state = await node.store.chats.find(chat);
  expect(state?.pinned).toBe(second.id);
  await expect(node.store.messages.remove(chat, user.sender, third.id)).rejects.toMatchObject({
    kind: 'message_to_delete_not_found',
  });
  // A person can remove their own reaction, and the counts of other people's reactions stay exact.
  expect((await node.store.posts.find(post, { id: 1, isBot: true })).reactions).toMatchObject([{ count: 2 }]);
  const taken = await node.store.posts.react(post, late, { what: 'remove', emoji: '👍' });
  expect(taken.reactions).toMatchObject([{ count: 1, users: [early.externalId] }]);
  await cluster.flush();
  await expectSameRows(node);
});

test('changes that are only in the journal survive a restart in which Redis loses no data', async () => {
  await send('kept');
  await cluster.flush();
  await send('in the journal alone');
  await node.store.pins.pin(made.chat, made.user.sender, 1, false);
  remember();
  await loseTail();
  const listed = await node.store.history.list(made.chat, 0, 10);
  expect(listed?.map(({ record }) => record.content.text)).toEqual([
    undefined,
    'in the journal alone',
    'kept',
  ]);
  expect((await node.store.chats.find(made.chat))?.pinned).toBe(1);
});

test('a lost id is not given out again, even if an edit and an eviction to Postgres follow the loss', async () => {
  const { id } = await send('kept');
  await cluster.flush();
  remember();
  expect((await send('lost')).id).toBe(2);
  await loseTail();
  await edit(id, 'edited');
  await cluster.flush();
  await evict(node, ...chatKeys(cluster.keys, made.chat, id));
  expect((await send('again')).id).toBe(1 + skip);
  await cluster.flush();
  await evict(node, ...chatKeys(cluster.keys, made.chat, id, 1 + skip));
  expect((await send('and again')).id).toBe(2 + skip);
});

test('ids that Redis lost in an earlier crash are not given out after a later crash', async () => {
  const channel = await node.store.chats.create('channel', 'News', made.user.id);
  const publish = () => node.store.messages.send(channel, made.user.sender, text('post'));
  const updateIds = async () => (await poll(node, made.bot)).map((update) => update.updateId);
  await send('kept');
  await publish();
  remember();
  await loseTail();
  const lost = [await send('lost'), await publish()];
  const lostUpdates = await updateIds();
  await loseTail();
  const after = [await send('again'), await publish()];
  for (const [i, { id, record }] of after.entries()) {
    expect(id).toBeGreaterThan(lost[i]?.id ?? 0);
    expect(record.post).toBeGreaterThanOrEqual(lost[i]?.record.post ?? 0);
  }
  expect(after[1]?.record.post).toBeGreaterThan(lost[1]?.record.post ?? 0);
  expect(Math.max(...(await updateIds()))).toBeGreaterThan(Math.max(...lostUpdates));
});

test('the id of the first post of a partition is not given out again after Redis loses the post', async () => {
  const channel = await node.store.chats.create('channel', 'News', made.user.id);
  const publish = async () =>
    (await node.store.messages.send(channel, made.user.sender, text('post'))).record.post ?? 0;
  remember();
  const posts = [await publish()];
  for (let losses = 0; losses < 2; losses++) {
    await loseTail();
    posts.push(await publish());
  }
  const [first = 0, second = 0, third = 0] = posts;
  expect(second).toBeGreaterThan(first);
  expect(third).toBeGreaterThan(second);
});

test('a chat that is created after a loss of data skips no ids', async () => {
  await send('x');
  remember();
  await loseTail();
  await send('y');
  let other = await makeDirect(node);
  while (cluster.keys.partitions.of(other.bot.id) !== partition()) other = await makeDirect(node);
  const { id } = await node.store.messages.send(other.chat, other.user.sender, text('first'));
  expect(id).toBe(1);
});

test('a replaced token stays invalid even if Redis loses the replacement', async () => {
  expect(await node.store.auth.bot(made.bot.token)).toMatchObject({ id: made.bot.id });
  remember();
  const { token } = await node.store.bots.regenerateToken(made.user.id, made.bot.id);
  await loseTail();
  // No change has raised the incarnation of the partition yet, because this look-up is the first access after the loss.
  expect(await node.store.auth.bot(made.bot.token)).toBeNull();
  expect(await node.store.auth.bot(token)).toMatchObject({ id: made.bot.id });
});

test('if a token is replaced during a look-up and Redis loses the change, the look-up does not store the old copy', async () => {
  await node.store.bots.regenerateToken(made.user.id, made.bot.id);
  const former = await node.store.bots.token(made.user.id, made.bot.id);
  const reader = await cluster.node();
  const held = gate();
  reader.hooks.call = async (name, run) => {
    if (name === 'control/write') await held.wait();
    return run();
  };
  const looked = reader.store.auth.bot(former);
  await held.reached;
  remember();
  await node.store.bots.regenerateToken(made.user.id, made.bot.id);
  await loseTail();
  held.open();
  await looked;
  expect(await node.store.auth.bot(former)).toBeNull();
});

test('a token that its owner has removed stays invalid even if Redis loses the removal', async () => {
  const user = await makeUser(node);
  expect(await node.store.auth.user(user.token)).toMatchObject({ id: user.id });
  remember();
  await node.store.users.removeTokens(user.id);
  await loseTail();
  expect(await node.store.auth.user(user.token)).toBeNull();
});

test('if Redis loses the record that a member has left, the member stays out of the chat', async () => {
  const group = await node.store.chats.create('group', 'Talk', made.user.id);
  const bot = await makeBot(node, made.user);
  const person = await makeUser(node);
  const put = (id: number, isBot: boolean, status: 'member' | 'left') =>
    node.store.chats.putMember(group, { id, is_bot: isBot }, status, {});
  await put(bot.id, true, 'member');
  await node.store.webhooks.remove(bot.id, true);
  await put(person.id, false, 'member');
  const say = (who: typeof person, value: string) =>
    node.store.messages.send(sharedChat(group.id), who.sender, text(value));
  await say(person, 'I am here');
  await eventually('heard', async () => shown(await poll(node, bot)).includes('I am here'));
  remember();
  await put(bot.id, true, 'left');
  await put(person.id, false, 'left');
  await loseTail();
  await expect(say(person, 'still?')).rejects.toMatchObject({ kind: 'not_chat_member' });
  await say(made.user, 'secret');
  const outbox = cluster.keys.outbox(cluster.keys.partitions.of(group.id));
  await eventually('forwarded', async () => (await node.connection.client.xlen(outbox)) === 0);
  expect(shown(await poll(node, bot))).toEqual(['I am here']);
});

test('if Redis loses updates of a queue while a forwarder waits, these updates are queued again', async () => {
  const group = await node.store.chats.create('group', 'Talk', made.user.id);
  const source = cluster.keys.partitions.of(group.id);
  let bot = await makeBot(node, made.user);
  while (cluster.keys.partitions.of(bot.id) === source) bot = await makeBot(node, made.user);
  await node.store.chats.putMember(group, { id: bot.id, is_bot: true }, 'member', {});
  await node.store.webhooks.remove(bot.id, true);
  const outbox = cluster.keys.outbox(source);
  const outboxLength = () => node.connection.client.xlen(outbox);
  await eventually('forwarded', async () => (await outboxLength()) === 0);
  node.hooks.call = (name, run) =>
    name === 'updates/read_outbox' ? Promise.reject(new Error('died')) : run();
  const say = (value: string) => node.store.messages.send(group, made.user.sender, text(value));
  const [first, second] = await Promise.all([cluster.node(), cluster.node()]);

  await say('survives');
  remember();
  await first.store.forwarder.forwardAll(source);
  expect(await outboxLength()).toBe(0);
  await say('lost');
  const held = gate();
  second.hooks.call = async (name, run) => {
    if (name === 'updates/accept_forwarded') await held.wait();
    return run();
  };
  const slow = second.store.forwarder.forwardAll(source).catch(() => undefined);
  await held.reached;
  await loseTail();
  held.open();
  await slow;
  await eventually('forwarded again', async () => {
    await second.store.forwarder.forwardAll(source).catch(() => undefined);
    return (await outboxLength()) === 0;
  });
  expect(shown(await poll(node, bot))).toEqual(['survives']);
});

test('if the call that opened a queue is repeated after Redis loses the queue, no update id is given out twice', async () => {
  const { chat, user, bot } = made;
  const say = (on: TestNode) => on.store.messages.send(chat, user.sender, text('x'));
  const firstId = async (on: TestNode) => (await poll(on, bot))[0]?.updateId;
  const other = await cluster.node();
  await node.connection.client.del(cluster.keys.queueState(bot.id));
  remember();
  const { call } = node.hooks;
  let lost: number | undefined;
  node.hooks.call = async (name, run, partition) => {
    const reply = (await call(name, run, partition)) as { readonly status: string };
    if (name !== 'updates/open_queue' || reply.status !== 'ok' || lost !== undefined) return reply as never;
    // The caller gets no reply. Another node uses the queue before Redis loses the queue.
    await say(other);
    lost = await firstId(other);
    await loseTail();
    return run();
  };
  await say(node);
  node.hooks.call = call;
  expect(lost).toBeDefined();
  expect(await firstId(node)).not.toBe(lost);
});
