/** Streams of updates whose clients are slow or gone, on several nodes (decision 0069). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { directChat } from '../../src/store/core/keys.js';
import { storeLimits as limits } from '../../src/store/limits.js';
import { eventually } from '../journal/support.js';
import { RunningTime } from '../support/running_time.js';
import {
  makeDirect,
  type Person,
  pass,
  poll,
  shown,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

const time = new RunningTime();
let cluster: TestCluster;
let a: TestNode;
let b: TestNode;
let bot: Person;
let user: Person;

beforeAll(async () => {
  cluster = await startCluster(2, 0, time);
});
beforeEach(async () => {
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
  ({ bot, user } = await makeDirect(b));
});
afterAll(() => cluster.close());

const say = (value: string) => b.store.messages.send(directChat(bot.id, user.id), user.sender, text(value));

/** A stream with a client that accepts everything unless `blocked` is true. */
function open(node: TestNode, consumer?: string, limit = 100) {
  const client = { blocked: false, got: [] as string[], ids: [] as number[], begun: false };
  let release = () => {};
  let disconnect = () => {};
  const asked = {
    ...{ offset: 0, limit, mask: null, lastSeen: 0 },
    ...(consumer === undefined
      ? {}
      : { consumer: { name: consumer, leaseMs: limits.consumer_lease_s_default * 1_000 } }),
    onGone: (listener: () => void) => {
      disconnect = listener;
    },
  };
  const over = node.store.polls.stream(bot.id, asked, () => {
    client.begun = true;
    return {
      async send(entry) {
        if (client.blocked) throw new Error('sent to a client that accepts nothing');
        client.got.push(...shown([entry]));
        client.ids.push(entry.updateId);
        return 1;
      },
      isBlocked: () => client.blocked,
      drained: () =>
        new Promise<void>((resolve) => {
          release = resolve;
        }),
    };
  });
  return Object.assign(client, {
    over: over.catch((error: unknown) => error),
    disconnect: () => disconnect(),
    accept() {
      client.blocked = false;
      release();
    },
  });
}

test.each([undefined, 'one'])(
  'a client that accepts nothing gets the rest when it does (consumer %s)',
  async (name) => {
    const stream = open(a, name);
    await say('0');
    await eventually('the first', () => stream.got.length === 1);
    stream.blocked = true;
    for (const value of ['1', '2', '3']) await say(value);
    await pass(time, 3_000, [a, b]);
    expect(stream.got).toEqual(['0']);
    stream.accept();
    await eventually('the rest', () => stream.got.length === 4);
    expect(stream.got).toEqual(['0', '1', '2', '3']);
    stream.disconnect();
    expect(await stream.over).toBeUndefined();
    expect(a.store.polls.streaming()).toBe(0);
  },
);

test('the stream of a consumer ends if the client confirms nothing for a minute, but not while it confirms', async () => {
  const stream = open(a, 'one');
  await say('0');
  await eventually('the first', () => stream.got.length === 1);
  await pass(time, limits.stream_confirm_ms_max - 5_000, [a, b]);
  await say('1');
  await eventually('the second', () => stream.got.length === 2);
  await b.store.polls.confirm(bot.id, (stream.ids[0] ?? 0) + 1, 'one');
  await pass(time, limits.stream_confirm_ms_max - 5_000, [a, b]);
  expect(a.store.polls.streaming()).toBe(1);
  await pass(time, 10_000, [a, b]);
  expect(await stream.over).toBeUndefined();
});

test('an idle stream of a consumer does not end', async () => {
  const stream = open(a, 'one');
  await eventually('begun', () => stream.begun);
  await pass(time, 2 * limits.stream_confirm_ms_max, [a, b]);
  await say('0');
  await eventually('the update', () => stream.got.length === 1);
  stream.disconnect();
  await stream.over;
});

test.each([undefined, 'one'])('a stream gets updates whose hints are lost (consumer %s)', async (name) => {
  a.hooks.hint = () => false;
  const stream = open(a, name);
  await eventually('begun', () => stream.begun);
  await say('0');
  await pass(time, 2 * limits.poll_tick_ms, [a, b]);
  await eventually('the update', () => stream.got.length === 1);
  stream.disconnect();
  await stream.over;
});

test.each([undefined, 'one'])(
  'a stream that is full continues if the hint is lost (consumer %s)',
  async (name) => {
    a.hooks.hint = () => false;
    const stream = open(a, name, 1);
    await eventually('begun', () => stream.begun);
    for (const value of ['0', '1']) await say(value);
    await pass(time, 2 * limits.poll_tick_ms, [a, b]);
    await eventually('the first', () => stream.got.length === 1);
    await b.store.polls.confirm(bot.id, (stream.ids[0] ?? 0) + 1, name);
    await pass(time, 2 * limits.poll_tick_ms, [a, b]);
    await eventually('the second', () => stream.got.length === 2);
    stream.disconnect();
    await stream.over;
  },
);

test('streams end when their node shuts down, and no new ones start', async () => {
  const streams = [open(a, 'one'), open(a, 'two')];
  await eventually('begun', () => streams.every(({ begun }) => begun));
  a.store.polls.close();
  for (const stream of streams) expect(await stream.over).toBeUndefined();
  const late = open(a, 'three');
  expect(await late.over).toBeUndefined();
  expect(a.store.polls.streaming()).toBe(0);
});

test('an idle stream makes no call of its own', async () => {
  const stream = open(a);
  await eventually('begun', () => stream.begun);
  await pass(time, 2_000, [a, b]);
  const calls: string[] = [];
  a.hooks.call = (name, run) => {
    calls.push(name);
    return run();
  };
  await pass(time, 10 * limits.poll_tick_ms, [a, b]);
  expect(calls.filter((name) => name.startsWith('updates/') && name !== 'updates/peek')).toEqual([]);
  expect(calls.filter((name) => name === 'updates/peek').length).toBeGreaterThanOrEqual(5);
  stream.disconnect();
  await stream.over;
  expect(await poll(b, bot)).toEqual([]);
});
