/**
 * Tests that bots get the reaction counts of a post at most once per second. However many nodes send counts, the last
 * counts that bots get are the current counts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { kindBit, updateMask } from '../../src/rules/update_kinds.js';
import { type ChatRef, partitionOfPost } from '../../src/store/core/keys.js';
import { systemTime } from '../../src/time.js';
import { viewUpdate } from '../../src/view/updates.js';
import { eventually } from '../journal/support.js';
import {
  evict,
  makeBot,
  makeUser,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let a: TestNode;
let b: TestNode;
let owner: Person;
let asking: Person;
let silent: Person;
let chat: ChatRef;
let post: number;
let message: number;

const kind = 'message_reaction_count';
const received = async (bot: Person, mask: number) =>
  (
    await a.store.polls.poll(bot.id, { offset: 0, limit: 100, timeout: 0, mask, onGone: () => undefined })
  ).filter((update) => update.kind === kind);
const countsHeard = async () =>
  (await received(asking, kindBit(kind))).map(({ counts }) =>
    (counts ?? []).map(({ emoji, count }) => `${emoji}${count}`).join(' '),
  );

const person = (n: number) => ({
  id: 9_000_000_000 + n,
  externalId: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
  ...{
    firstName: 'P',
    lastName: null,
    username: null,
    languageCode: null,
    tokens: [],
    addToGroups: 'everyone' as const,
    startChats: 'everyone' as const,
  },
});
const set = (n: number, emoji = '👍', on = post) =>
  a.store.posts.react(on, person(n), { what: 'set', emoji });
const clear = (n: number) => a.store.posts.react(post, person(n), { what: 'clear' });

const tell = async (node: TestNode) => {
  await node.store.postCounts.tellCounts(partitionOfPost(post));
  await node.store.forwarder.forwardAll(partitionOfPost(post));
};
const dueIn = async () => {
  const due = await a.connection.client.zscore(cluster.keys.countsDue(partitionOfPost(post)), `${post}`);
  return due === null ? null : Number(due);
};
const untilDue = () => sleep(limits.counts_interval_ms_min + 50);

beforeAll(async () => {
  cluster = await startCluster();
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
  owner = await makeUser(a);
});
afterAll(() => cluster?.close());

beforeEach(async () => {
  chat = await a.store.chats.create('channel', 'News', owner.id);
  [asking, silent] = await Promise.all([makeBot(a, owner), makeBot(a, owner)]);
  for (const bot of [asking, silent])
    await a.store.chats.putMember(chat, { id: bot.id, is_bot: true }, 'member', {}, owner.id);
  await Promise.all([received(asking, kindBit(kind)), received(silent, updateMask([]))]);
  const sent = await a.store.messages.send(chat, owner.sender, text('post'));
  [post, message] = [sent.record.post, sent.id];
});

test('only bots that request reaction counts get these counts, and the most used emoji comes first', async () => {
  for (const [n, emoji] of [
    [1, '🔥'],
    [1, '👍'],
    [2, '👍'],
  ] as const)
    await set(n, emoji);
  await tell(a);
  expect(await countsHeard()).toEqual([]);
  await untilDue();
  await Promise.all([tell(a), tell(b), tell(a), tell(b)]);
  const [update, ...more] = await received(asking, kindBit(kind));
  expect(more).toEqual([]);
  expect(viewUpdate(update as NonNullable<typeof update>, asking.sender.profile, systemTime)).toEqual({
    update_id: expect.any(Number),
    [kind]: {
      chat: { id: chat.id, type: 'channel', title: 'News' },
      message_id: message,
      date: expect.closeTo(Date.now() / 1000, -1),
      reactions: [
        { type: { type: 'emoji', emoji: '👍' }, total_count: 2 },
        { type: { type: 'emoji', emoji: '🔥' }, total_count: 1 },
      ],
    },
  });
  expect(await received(silent, updateMask([]))).toEqual([]);
});

test('a bot gets at most one count update per post per second', async () => {
  const begun = performance.now();
  let n = 0;
  while (performance.now() - begun < 3_300) {
    await set(++n);
    await tell(n % 2 === 0 ? a : b);
    // Waits, because no flusher empties the journal in this test and the journal must not fill up.
    await sleep(10);
  }
  const during = await countsHeard();
  expect(during.length).toBeGreaterThanOrEqual(2);
  expect(during.length).toBeLessThanOrEqual(Math.floor((performance.now() - begun) / 1_000));
  await clear(1);
  await untilDue();
  await tell(b);
  expect((await countsHeard()).at(-1)).toBe(`👍${n - 1}`);
  for (let i = 2; i <= n; i++) await clear(i);
  await untilDue();
  await tell(a);
  expect((await countsHeard()).at(-1)).toBe('');
  await untilDue();
  const all = await countsHeard();
  await tell(a);
  expect(await countsHeard()).toEqual(all);
});

test('if a node dies before, during or after it sends counts, no update is lost or duplicated', async () => {
  const dying = await cluster.node();
  for (const [n, moment] of (['before', 'amid', 'behind'] as const).entries()) {
    await set(n + 1);
    await untilDue();
    const at = { before: 'posts/tell_counts', amid: 'posts/tell_counts', behind: 'updates/trim_outbox' }[
      moment
    ];
    dying.hooks.call = async (name, run) => {
      if (name !== at) return run();
      if (moment === 'amid') await run();
      throw new Error('died');
    };
    await expect(tell(dying)).rejects.toThrow('died');
    await tell(b);
    expect(await countsHeard()).toEqual(['👍1', '👍2', '👍3'].slice(0, n + 1));
  }
});

test('the sweep of any node sends the reaction counts, even if Redis has evicted the post and the channel', async () => {
  await set(1);
  await cluster.flush();
  const acted = await a.connection.client.keys(`${cluster.keys.acted(post)}*`.replaceAll(/[{}]/g, '?'));
  await evict(a, cluster.keys.post(post), cluster.keys.chat(chat), ...acted);
  const sweeping = await cluster.node();
  sweeping.store.sweep.start();
  await eventually('told', async () => (await countsHeard()).length > 0);
  await sweeping.store.sweep.stop();
  expect(await countsHeard()).toEqual(['👍1']);
  expect(await dueIn()).toBeNull();
});

test('no reaction counts are sent for a deleted post, whether Redis has evicted it or not', async () => {
  await set(1);
  await a.store.messages.remove(chat, owner.sender, message);
  await cluster.flush();
  await evict(a, cluster.keys.post(post));
  await untilDue();
  await tell(a);
  expect(await dueIn()).toBeNull();
  expect(await countsHeard()).toEqual([]);
});

test('a reaction in a channel without bots causes no count updates', async () => {
  const lonely = await a.store.chats.create('channel', 'C', owner.id);
  const other = (await a.store.messages.send(lonely, owner.sender, text('post'))).record.post;
  await set(1, '👍', other);
  const due = cluster.keys.countsDue(partitionOfPost(other));
  expect(await a.connection.client.zscore(due, `${other}`)).toBeNull();
});
