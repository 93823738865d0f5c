/** Tests streams of updates on several nodes, with clients that are slow or gone (decision 0069). */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { directChat } from '../../src/store/core/keys.js';
import { storeLimits as limits } from '../../src/store/limits.js';
import { eventually } from '../journal/support.js';
import { RunningTime } from '../support/running_time.js';
import {
  makeDirect,
  type Person,
  pass,
  shown,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

const time = new RunningTime();
const short_lease_ms = 200;
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
function open(
  node: TestNode,
  consumer?: string,
  {
    limit = 100,
    lastSeen = 0,
    blocked = false,
    leaseMs = limits.consumer_lease_s_default * 1_000,
  }: { limit?: number; lastSeen?: number; blocked?: boolean; leaseMs?: number } = {},
) {
  const client = { blocked, got: [] as string[], ids: [] as number[], begun: false };
  let release = () => {};
  let disconnect = () => {};
  const asked = {
    ...{ offset: 0, limit, mask: null, lastSeen },
    ...(consumer === undefined ? {} : { consumer: { name: consumer, leaseMs } }),
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
  'a client that accepts nothing for a while gets the rest when it accepts again (consumer %s)',
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

test('the stream of a consumer ends if the client confirms nothing for a minute, but not while the client confirms updates', async () => {
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
  await pass(time, limits.stream_confirm_ms_max / 2, [a, b]);
  await say('1');
  await eventually('the next update', () => stream.got.length === 2);
  expect(a.store.polls.streaming()).toBe(1);
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
  'a full stream continues after a confirmation even if the hint is lost (consumer %s)',
  async (name) => {
    a.hooks.hint = () => false;
    const stream = open(a, name, { limit: 1 });
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

test('streams end when their node shuts down, and no new streams start', async () => {
  const streams = [open(a, 'one'), open(a, 'two')];
  await eventually('begun', () => streams.every(({ begun }) => begun));
  a.store.polls.close();
  for (const stream of streams) expect(await stream.over).toBeUndefined();
  const late = open(a, 'three');
  expect(await late.over).toBeUndefined();
  expect(a.store.polls.streaming()).toBe(0);
});

/** From now on, records the names of the scripts in `updates/` that a node calls. Returns this list. */
function callsOf(node: TestNode): string[] {
  const calls: string[] = [];
  node.hooks.call = (name, run) => {
    if (name.startsWith('updates/')) calls.push(name);
    return run();
  };
  return calls;
}

test.each([
  [undefined, 'updates/peek'],
  ['one', 'updates/renew'],
])('idle streams make no call of their own (consumer %s)', async (name, check) => {
  const stream = open(a, name);
  const other = name === undefined ? undefined : open(a, 'two');
  await eventually('both begun', () => other?.begun !== false);
  await eventually('begun', () => stream.begun);
  await pass(time, 2_000, [a, b]);
  const calls = callsOf(a);
  await pass(time, 10 * limits.poll_tick_ms, [a, b]);
  expect(calls.filter((each) => each !== check)).toEqual([]);
  expect(calls.length).toBeGreaterThanOrEqual(5);
  expect(calls.length).toBeLessThanOrEqual(11);
  for (const each of [stream, other]) each?.disconnect();
  await Promise.all([stream.over, other?.over]);
});

/** Opens a stream whose client accepts one update and then nothing. A second update is pending. */
async function openStuck(name: string | undefined): Promise<ReturnType<typeof open>> {
  const stuck = open(a, name);
  await say('0');
  await eventually('the first', () => stuck.got.length === 1);
  stuck.blocked = true;
  await say('1');
  return stuck;
}

test.each([undefined, 'one'])(
  'a stream whose client accepts nothing ends when another one replaces it (consumer %s)',
  async (name) => {
    const stuck = await openStuck(name);
    const newer = open(b, name);
    await eventually('begun', () => newer.begun);
    await eventually('ended', () => a.store.polls.streaming() === 0);
    expect(await stuck.over).toMatchObject({ kind: 'poll_terminated_by_poll' });
    newer.disconnect();
    await newer.over;
  },
);

test.each([undefined, 'one'])(
  'a stream whose client accepts nothing ends when a webhook is set, even if the hint is lost (consumer %s)',
  async (name) => {
    const stuck = await openStuck(name);
    a.hooks.hint = () => false;
    const settings = {
      ...{ url: 'https://example.com/hook', secretToken: null, certificate: null },
      ...{ maxConnections: 1, address: '192.0.2.1' },
    };
    await b.store.webhooks.set(bot.id, settings, { drop: false, mask: null });
    await pass(time, 2 * limits.poll_tick_ms, [a, b]);
    await eventually('ended', () => a.store.polls.streaming() === 0);
    expect(await stuck.over).toMatchObject({ kind: 'poll_terminated_by_webhook' });
  },
);

test('new updates cause no Redis calls for a stream that waits for confirmations', async () => {
  const stream = open(a, undefined, { limit: 1 });
  await say('0');
  await eventually('the first', () => stream.got.length === 1);
  await pass(time, 2 * limits.poll_tick_ms, [a, b]);
  const calls = callsOf(a);
  const begunMs = performance.now();
  for (let n = 1; n <= 100; n++) await say(`${n}`);
  await b.store.polls.confirm(bot.id, (stream.ids[0] ?? 0) + 1);
  await eventually('the second', () => stream.got.length === 2);
  // The stream checks its queue each second, and also after the confirmation.
  const checks = 2 + Math.ceil((performance.now() - begunMs) / limits.poll_tick_ms);
  expect(calls.length).toBeLessThanOrEqual(4 * checks);
  stream.disconnect();
  await stream.over;
});

test('while a stream that waits for confirmations is being checked, a new update causes no second check', async () => {
  const stream = open(a, undefined, { limit: 1 });
  await say('0');
  await eventually('the first', () => stream.got.length === 1);
  await pass(time, 2 * limits.poll_tick_ms, [a, b]);
  let notice = () => {};
  const noticed = new Promise<void>((resolve) => {
    notice = resolve;
  });
  a.hooks.hint = () => {
    notice();
    return true;
  };
  // Once a second, the node reads the state of all polls of the partition (`updates/peek`), and then checks each poll
  // (`updates/follow`).
  let looks = 0;
  let checks = 0;
  a.hooks.call = async (name, run) => {
    if (name === 'updates/peek') looks++;
    if (name === 'updates/follow' && looks > 0 && ++checks === 1) {
      await say('1');
      await noticed;
    }
    return run();
  };
  await pass(time, 3 * limits.poll_tick_ms, [a, b]);
  await eventually('three checks', () => checks >= 3);
  expect(checks).toBeLessThanOrEqual(looks);
  stream.disconnect();
  await stream.over;
});

test('a resumed stream sends every unconfirmed update, even if its client accepts nothing at first', async () => {
  for (const value of ['0', '1']) await say(value);
  const consumer = { name: 'one', leaseMs: limits.consumer_lease_s_default * 1_000 };
  const asked = { offset: 0, limit: 100, timeout: 0, mask: null, onGone: () => undefined };
  const [first] = await b.store.polls.poll(bot.id, { ...asked, consumer });
  const stream = open(a, 'one', { lastSeen: first?.updateId ?? 0, blocked: true });
  await eventually('begun', () => stream.begun);
  await pass(time, limits.poll_tick_ms, [a, b]);
  stream.accept();
  await eventually('the second', () => stream.got.includes('1'));
  expect(stream.got).toEqual(['0', '1']);
  stream.disconnect();
  await stream.over;
});

test('if the updates of a stream move to another consumer and back, the stream sends all these updates again', async () => {
  const stream = open(a, 'one', { leaseMs: short_lease_ms });
  await say('0');
  await eventually('the first', () => stream.got.length === 1);
  stream.blocked = true;
  await say('1');
  const asked = { offset: 0, limit: 100, timeout: 0, mask: null, onGone: () => undefined };
  const other = { ...asked, consumer: { name: 'two', leaseMs: short_lease_ms } };
  await expect.poll(async () => shown(await b.store.polls.poll(bot.id, other))).toEqual(['0', '1']);
  stream.accept();
  await eventually('all updates', () => stream.got.length === 3);
  expect(stream.got).toEqual(['0', '0', '1']);
  stream.disconnect();
  await stream.over;
});

test('if chats move to the consumer of a resumed stream, the stream sends their updates, even updates up to its Last-Event-ID', async () => {
  for (const value of ['0', '1']) await say(value);
  const consumer = { name: 'other', leaseMs: 60_000 };
  const asked = { offset: 0, limit: 100, timeout: 0, mask: null, onGone: () => undefined };
  const got = await b.store.polls.poll(bot.id, { ...asked, consumer });
  expect(got).toHaveLength(2);
  const stream = open(a, 'one', { lastSeen: got.at(-1)?.updateId ?? 0 });
  await eventually('begun', () => stream.begun);
  await a.connection.client.zadd(cluster.keys.consumers(bot.id), Date.now() - 1, consumer.name);
  await pass(time, 2 * limits.poll_tick_ms, [a, b]);
  await eventually('both', () => stream.got.length === 2);
  expect(stream.got).toEqual(['0', '1']);
  stream.disconnect();
  await stream.over;
});
