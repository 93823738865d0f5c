import { afterAll, beforeAll, expect, test } from 'vitest';
import { watchReactions } from '../../src/actions/post_stream.js';
import { viewReactions } from '../../src/actions/posts.js';
import { limits } from '../../src/limits.js';
import type { User } from '../../src/store/core/control.js';
import { partitionOfPost, postNumber } from '../../src/store/core/keys.js';
import { eventually } from '../journal/support.js';
import { RunningTime } from '../support/running_time.js';
import {
  evict,
  makeUser,
  pass,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';
import { longTest } from '../support/tiers.js';

const time = new RunningTime();
let cluster: TestCluster;
let a: TestNode;
let b: TestNode;

beforeAll(async () => {
  cluster = await startCluster(undefined, undefined, time);
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
});
afterAll(() => cluster.close());

/** These users need no member records, because every signed-in user sees a public channel. */
const people = (count: number, from = 1): User[] =>
  Array.from({ length: count }, (_, i) => ({
    id: 9_000_000_000 + from + i,
    externalId: `00000000-0000-4000-8000-${String(from + i).padStart(12, '0')}`,
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
  }));

async function makePost(): Promise<number> {
  const owner = await makeUser(a);
  const chat = await a.store.chats.create('channel', 'C', owner.id);
  await a.db.query('update chats set private = false where id = $1', [chat.id]);
  return (await a.store.messages.send(chat, owner.sender, text('post'))).record.post;
}

const set = (emoji: string) => ({ what: 'set', emoji }) as const;
const remove = (emoji: string) => ({ what: 'remove', emoji }) as const;
const viewer = { id: 1, isBot: true };

const liveRows = (post: number) =>
  a.written.query<{ user_id: number }>(
    'select user_id from post_reactions where partition = $1 and number = $2 and record is not null',
    [partitionOfPost(post), postNumber(post)],
  );

async function actedKeys(post: number): Promise<string[]> {
  return a.connection.client.keys(`${cluster.keys.acted(post)}*`.replaceAll(/[{}]/g, '?'));
}

async function inBatches<T>(
  items: readonly T[],
  work: (item: T, i: number) => Promise<unknown>,
): Promise<void> {
  for (let i = 0; i < items.length; i += 250)
    await Promise.all(items.slice(i, i + 250).map((x, j) => work(x, i + j)));
}

longTest('after 500 users toggled one emoji simultaneously, the counts are the same everywhere', async () => {
  const post = await makePost();
  const users = people(500);
  // Each user sets and removes the reaction on two nodes in turn. In the end, only the users with an even index have
  // the reaction.
  await Promise.all(
    users.map(async (user, i) => {
      for (let n = 0; n <= 4 + (i % 2); n++) {
        await (n % 2 === 0 ? a : b).store.posts.react(post, user, n % 2 === 0 ? set('👍') : remove('👍'));
      }
    }),
  );
  const expected = users.filter((_, i) => i % 2 === 0).map((user) => user.id);
  const [hot] = (await a.store.posts.find(post, viewer)).reactions;
  expect(hot?.count).toBe(expected.length);
  await cluster.flush();
  expect((await liveRows(post)).map((row) => row.user_id).sort()).toEqual(expected.sort());
  await evict(a, cluster.keys.post(post), ...(await actedKeys(post)));
  const cold = await b.store.posts.find(post, viewer);
  expect(cold.reactions[0]?.count).toBe(expected.length);
  expect(cold.reactions[0]?.users.slice(0, 100).length).toBe(limits.reactors_listed_max);
  expect(await a.connection.client.hget(cluster.keys.post(post), 'u')).toBe(String(expected.length));
  // The earlier reactions of these users are now only in Postgres.
  const [first, second] = users as [User, User];
  expect((await a.store.posts.react(post, first, set('👍'))).reactions[0]?.count).toBe(expected.length);
  expect((await a.store.posts.react(post, first, remove('👍'))).reactions[0]?.count).toBe(
    expected.length - 1,
  );
  expect((await a.store.posts.react(post, second, set('👍'))).reactions[0]?.count).toBe(expected.length);
});

test('if removed reactions shorten the list of the latest reactors, earlier reactors fill the list again', async () => {
  const post = await makePost();
  const users = people(300, 10_000);
  for (const user of users) await a.store.posts.react(post, user, set('🔥'));
  await cluster.flush();
  for (const user of users.slice(-80)) await a.store.posts.react(post, user, remove('🔥'));
  const [entry] = (await a.store.posts.find(post, viewer)).reactions;
  expect(entry?.count).toBe(220);
  const expected = users
    .slice(0, 220)
    .reverse()
    .map((user) => user.externalId);
  expect(entry?.users.slice(0, 100)).toEqual(expected.slice(0, 100));
});

test('a reaction to a post with many reactions writes little more data than a reaction to a post with few', async () => {
  const [few, many] = await Promise.all([makePost(), makePost()]);
  const written = async () => {
    const info = await a.connection.client.info('persistence');
    return Number(/aof_current_size:(\d+)/.exec(info)?.[1]);
  };
  const perReaction = async (post: number, from: number) => {
    const before = await written();
    await inBatches(people(50, from), (user) => a.store.posts.react(post, user, set('👍')));
    return ((await written()) - before) / 50;
  };
  await inBatches(people(400, 20_000), (user) => a.store.posts.react(many, user, set('👍')));
  const first = await perReaction(few, 21_000);
  expect(first).toBeGreaterThan(300);
  expect((await perReaction(many, 22_000)) - first).toBeLessThan(300);
});

test('a post lists at most the configured number of reactors, with the caller first', async () => {
  const post = await makePost();
  const brief = await cluster.node(3);
  const users = people(5, 30_000);
  for (const user of users) await a.store.posts.react(post, user, set('👍'));
  const [first, ...others] = users.map((user) => user.externalId);
  const state = await brief.store.posts.react(post, users[0] as User, set('🔥'));
  const latest = others.slice(-2).reverse();
  expect(viewReactions(state, users[0] as User)).toEqual([
    { emoji: '👍', count: 5, user_ids: [first, ...latest], user_ids_truncated: true },
    { emoji: '🔥', count: 1, user_ids: [first] },
  ]);
  expect(viewReactions(await a.store.posts.find(post, viewer), null)[0]).toMatchObject({
    user_ids: [...others.reverse(), first],
  });
});

test('a viewer of a post sees each change once, even a change whose hint was lost', async () => {
  const post = await makePost();
  const [first, second] = people(2, 40_000) as [User, User];
  const seen: string[] = [];
  const watching = await cluster.node();
  const end = await watchReactions(watching.store, first, post, (data) =>
    seen.push((data as { reactions: { count: number }[] }).reactions.map(({ count }) => count).join()),
  );
  await a.store.posts.react(post, first, set('👍'));
  await eventually('hinted', () => seen.length === 2);
  watching.hooks.hint = () => false;
  await a.store.posts.react(post, second, set('👍'));
  await eventually('looked', () => seen.length === 3);
  await pass(time, limits.poll_tick_ms * 2 + limits.post_stream_interval_ms, [watching]);
  expect(seen).toEqual(['', '1', '2']);
  end();
  watching.hooks.hint = () => true;
  await a.store.posts.react(post, second, remove('👍'));
  await pass(time, limits.poll_tick_ms + limits.post_stream_interval_ms, [watching]);
  expect(seen).toEqual(['', '1', '2']);
});

test('the record of a reaction takes at most 100 bytes', async () => {
  const large = await makePost();
  const client = a.connection.client;
  const bytesOf = async (post: number) => {
    let sum = 0;
    for (const key of [cluster.keys.post(post), ...(await actedKeys(post))]) {
      sum += Number((await client.memory('USAGE', key, 'SAMPLES', 0)) ?? 0);
    }
    return sum;
  };
  const count = 5_000;
  const empty = await bytesOf(large);
  for (let from = 0; from < count; from += 2_500) {
    await inBatches(people(2_500, 100_000 + from), async (user) =>
      a.store.posts.react(large, user, set('👍')),
    );
    await cluster.flush();
  }
  const each = (await bytesOf(large)) - empty;
  expect(each / count).toBeLessThan(100);
  expect(await client.hget(cluster.keys.post(large), 'n:👍')).toBe(String(count));
});
