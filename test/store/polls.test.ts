/**
 * Tests long polls on several nodes: lost hints, two polls of one bot, and a queue that was confirmed on another node.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { eventually, gate } from '../journal/support.js';
import {
  makeDirect,
  poll,
  shown,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
  within,
} from '../support/store.js';

let cluster: TestCluster;
let a: TestNode;
let b: TestNode;
let made: Awaited<ReturnType<typeof makeDirect>>;

beforeAll(async () => {
  cluster = await startCluster(2);
});
beforeEach(async () => {
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
  made = await makeDirect(b);
});
afterAll(() => cluster.close());

const send = (value: string) => b.store.messages.send(made.chat, made.user.sender, text(value));
const terminated = { kind: 'poll_terminated_by_poll' };

/** Starts a poll on a node. Returns when the poll has read the queue and is waiting. */
async function waiting(node: TestNode, timeout = 20) {
  const answer = poll(node, made.bot, 0, timeout).catch((error: unknown) => error);
  await eventually('waiting', () => node.store.polls.waiting() === 1);
  await sleep(100);
  return answer;
}

test('a hint wakes a poll on another node immediately', async () => {
  const took: number[] = [];
  let offset = 0;
  // Measures several polls, because a busy machine may delay single answers.
  do {
    let ended = Number.POSITIVE_INFINITY;
    const answer = poll(a, made.bot, offset, 20).then((updates) => {
      ended = performance.now();
      return updates;
    });
    // The poll must not end before the message is sent.
    const waits = eventually('waiting', () => a.store.polls.waiting() === 1);
    expect(await Promise.race([answer, waits])).toBeUndefined();
    await sleep(100);
    const sent = performance.now();
    await send('hello');
    const updates = await answer;
    expect(shown(updates)).toEqual(['hello']);
    offset = Number(updates[0]?.updateId) + 1;
    took.push(ended - sent);
  } while (took.length < 10 && Math.min(...took) > limits.poll_tick_ms / 4);
  expect(Math.min(...took)).toBeLessThan(limits.poll_tick_ms / 4);
});

test('if the hint about an update is lost, a poll reads its queue again within a second and finds the update', async () => {
  a.hooks.hint = () => false;
  const pending = waiting(a);
  await sleep(150);
  const sent = performance.now();
  await send('hello');
  expect(shown((await pending) as never)).toEqual(['hello']);
  expect(performance.now() - sent).toBeLessThan(10 * limits.poll_tick_ms);
});

test.each([true, false])(
  'the newer of two polls on two nodes ends the older poll (hints arrive: %s)',
  async (hinted) => {
    if (!hinted) a.hooks.hint = () => false;
    const older = poll(a, made.bot, 0, 20).catch((error: unknown) => error);
    await eventually('waiting', () => a.store.polls.waiting() === 1);
    await sleep(100);
    const newer = poll(b, made.bot, 0, 20);
    const before = performance.now();
    expect(await older).toMatchObject(terminated);
    expect(performance.now() - before).toBeLessThan(10 * limits.poll_tick_ms);
    await send('for the newer');
    expect(shown(await newer)).toEqual(['for the newer']);
  },
);

test('a poll gets no updates that were read and confirmed on another node', async () => {
  const answer = poll(a, made.bot, 0, 20).catch((error: unknown) => error);
  await eventually('waiting', () => a.store.polls.waiting() === 1);
  await sleep(100);
  const held = gate();
  a.hooks.call = async (name, run) => {
    if (name === 'updates/poll') await held.wait();
    return run();
  };
  await send('once');
  await held.reached;
  const [got] = await poll(b, made.bot);
  expect(shown([got as never])).toEqual(['once']);
  expect(await poll(b, made.bot, (got?.updateId ?? 0) + 1)).toEqual([]);
  await send('next');
  held.open();
  expect(await answer).toMatchObject(terminated);
  expect(shown(await poll(b, made.bot))).toEqual(['next']);
});

test('a long poll ends if a newer long poll starts after the first read of the queue and before the wait', async () => {
  const held = gate();
  let looks = 0;
  a.hooks.call = async (name, run) => {
    if (name === 'updates/poll' && ++looks === 2) await held.wait();
    return run();
  };
  const older = poll(a, made.bot, 0, 20).catch((error: unknown) => error);
  await held.reached;
  const newer = poll(b, made.bot, 0, 20);
  await eventually('the newer poll waits', () => b.store.polls.waiting() === 1);
  held.open();
  expect(await older).toMatchObject(terminated);
  await send('x');
  expect(shown(await newer)).toEqual(['x']);
});

test("an update that arrives between a poll's first read and its subscription is found immediately", async () => {
  let found: unknown = 'late';
  let offset = 0;
  // Tries several times, because a busy machine may delay single answers.
  for (let tries = 0; tries < 10 && found === 'late'; tries++) {
    const held = gate();
    let looks = 0;
    a.hooks.call = async (name, run) => {
      const answer = await run();
      if (name === 'updates/poll' && ++looks === 1) await held.wait();
      return answer;
    };
    const answer = poll(a, made.bot, offset, 20);
    await held.reached;
    await send('meanwhile');
    held.open();
    found = await within(limits.poll_tick_ms / 2, answer);
    offset = ((await answer)[0]?.updateId ?? 0) + 1;
  }
  expect(shown(found as never)).toEqual(['meanwhile']);
});

test('the offset of a poll confirms the updates below this offset', async () => {
  for (const value of ['1', '2', '3', '4']) await send(value);
  const [first] = await poll(a, made.bot);
  const id = first?.updateId ?? 0;
  expect(shown(await poll(b, made.bot, id + 1))).toEqual(['2', '3', '4']);
  expect(shown(await poll(a, made.bot, id + 100))).toEqual(['2', '3', '4']);
  expect(shown(await poll(a, made.bot, -2))).toEqual(['3', '4']);
  expect(await poll(a, made.bot, id + 4)).toEqual([]);
  expect(await b.store.queues.info(made.bot.id)).toMatchObject({ pending: 0 });
});

test('a poll with an offset of -N takes little time even if fewer than N updates are pending', async () => {
  const { bot } = await makeDirect(a);
  await poll(a, bot);
  const { client } = a.connection;
  const queue = cluster.keys.queue(bot.id);
  const fill = `for i = 1, 5000 do
    redis.call('XADD', KEYS[1], (10 ^ 9 + i) .. '-0', 'k', 'message', 't', ARGV[1], 'c', '1.1', 'm', i, 'r', ARGV[2], 'f', '', 'p', '', 'y', '', 'x', '')
  end`;
  await client.eval(fill, 1, queue, Date.now(), 'x'.repeat(2_000));
  await client.hset(cluster.keys.queueState(bot.id), 'seq', 10 ** 9 + 5_000);
  const look = (offset: string, limit: number) =>
    a.runner.call(
      'updates/poll',
      cluster.keys.partitions.of(bot.id),
      {
        meta: cluster.keys.meta(cluster.keys.partitions.of(bot.id)),
        journal: cluster.keys.journal(cluster.keys.partitions.of(bot.id)),
        state: cluster.keys.queueState(bot.id),
        queue,
        channel: cluster.keys.botChannel(bot.id),
      },
      { bot: String(bot.id), poll: 'p', first: true, offset, limit, mask: '' },
    );
  const timed = async (work: () => Promise<unknown>) => {
    let best = Number.POSITIVE_INFINITY;
    for (let n = 0; n < 5; n++) {
      const begun = performance.now();
      await work();
      best = Math.min(best, performance.now() - begun);
    }
    return best;
  };
  const whole = await timed(() => client.eval("return #redis.call('XRANGE', KEYS[1], '-', '+')", 1, queue));
  expect(await timed(() => look('-100000', 1))).toBeLessThan(whole / 5);
  expect(await client.xlen(queue)).toBe(5_000);
  // Each read removes only a limited number of old updates.
  for (let looks = 0; looks < 50; looks++) {
    const taken = await look('-2', 1);
    if (taken.status === 'ok' && !taken.more) break;
  }
  expect(await client.xlen(queue)).toBe(2);
});

test('if an offset keeps only the last update of a long queue, the other updates are removed in several small steps', async () => {
  const { client } = a.connection;
  const { id } = made.bot;
  await send('first');
  const [key, state] = [a.keys.queue(id), a.keys.queueState(id)];
  await client.eval(
    `local entry = redis.call('XRANGE', KEYS[1], '-', '+')[1]
     local seq, size = tonumber(redis.call('HGET', KEYS[2], 'seq')), 0
     for i = 2, #entry[2], 2 do size = size + #entry[2][i] end
     for i = 1, 3000 do redis.call('XADD', KEYS[1], ('%.0f-0'):format(seq + i), unpack(entry[2])) end
     redis.call('HSET', KEYS[2], 'seq', ('%.0f'):format(seq + 3000))
     redis.call('HINCRBY', KEYS[2], 'bytes', 3000 * size)`,
    2,
    key,
    state,
  );
  await send('last');
  const largest: number[] = [];
  a.hooks.call = async (name, run) => {
    const before = await client.xlen(key);
    const answer = await run();
    if (name === 'updates/poll') largest.push(before - (await client.xlen(key)));
    return answer;
  };
  expect(shown(await poll(a, made.bot, -1))).toEqual(['last']);
  expect(await client.xlen(key)).toBe(1);
  expect(Math.max(...largest)).toBeLessThanOrEqual(limits.script_entries_max);
  const [[, fields]] = (await client.xrange(key, '-', '+')) as [[string, string[]]];
  const size = fields.reduce((sum, value, i) => sum + (i % 2) * Buffer.byteLength(value), 0);
  // The test reads the binary record as text, which may be some bytes longer than the record.
  expect(Math.abs(Number(await client.hget(state, 'bytes')) - size)).toBeLessThan(100);
});
