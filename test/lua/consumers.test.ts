/**
 * Tests the guarantees for consumers that poll, in random histories. No update is lost even if answers are lost, the
 * updates of a chat arrive in order, and only one consumer at a time gets updates of a chat.
 */
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { storeLimits as limits } from '../../src/store/limits.js';
import { property_ms_max, propertyRuns } from '../support/property_runs.js';
import { ConsumerWorld, emptied, lease, type Name, names, step } from './consumer_world.js';
import { bot, keys, startClusterNode } from './world.js';

let node: Awaited<ReturnType<typeof startClusterNode>>;
let client: Redis;
beforeAll(async () => {
  node = await startClusterNode();
  client = node.client;
});
afterAll(() => node.stop());

type Act =
  | { readonly do: 'add'; readonly chat: number }
  | { readonly do: 'poll' | 'wait'; readonly name: Name; readonly limit: number; readonly lost: boolean }
  | { readonly do: 'pause' | 'restart'; readonly name: Name }
  | { readonly do: 'plain' };

const acts: fc.Arbitrary<Act> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('add' as const), chat: fc.nat(4) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      ...{ do: fc.constantFrom('poll' as const, 'poll' as const, 'wait' as const) },
      ...{ name: fc.constantFrom(...names) },
      ...{ limit: fc.integer({ min: 1, max: 6 }), lost: fc.boolean() },
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('pause' as const, 'restart' as const),
      name: fc.constantFrom(...names),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'plain' as const }) },
);

/** A bot whose processes call `getUpdates`. A call may wait for updates. */
class PollWorld extends ConsumerWorld {
  /** The arguments of the waiting poll of each process. */
  readonly #waits: Partial<
    Record<Name, { name: Name; poll: string; lease: string; limit: string; offset: string }>
  > = {};

  override async poll(name: Name, limit: number, lost: boolean): Promise<number[]> {
    const poll = this.newPoll();
    const args = { ...{ name, poll, lease }, limit: `${limit}`, offset: `${this.offsets[name]}` };
    const ids = await super.poll(name, limit, lost, poll);
    // A poll that has returned updates is complete and makes no further step.
    if (ids.length === 0) this.#waits[name] = args;
    else delete this.#waits[name];
    return ids;
  }

  /**
   * Runs another step of the waiting poll of a process. If the step finds no update, a new poll must not find one
   * either.
   */
  async wait(name: Name, limit: number, lost: boolean): Promise<void> {
    const args = this.#waits[name];
    if (args === undefined) return;
    const ids = await this.take(name, { ...args, first: false });
    if (!lost && ids !== null) this.receive(name, ids);
    if (ids?.length === 0) expect(await this.poll(name, limit, false)).toEqual([]);
    else delete this.#waits[name];
  }

  async act(act: Act): Promise<void> {
    if (act.do === 'add') return this.add(act.chat);
    if (act.do === 'plain') return this.plain();
    if (act.do === 'poll') return void (await this.poll(act.name, act.limit, act.lost));
    if (act.do === 'wait') return this.wait(act.name, act.limit, act.lost);
    if (act.do === 'restart') return this.restart(act.name);
    return this.pause(act.name);
  }
}

test(
  'no sequence of consumer actions loses an update, breaks the order in a chat, or gets stuck',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(acts, { minLength: 1, maxLength: 40 }), async (history) => {
        await emptied(client);
        const world = new PollWorld(client);
        for (const act of history) await world.act(act);
        await world.finish((name) => world.poll(name, 100, false));
      }),
      { numRuns: propertyRuns(100) },
    );
  },
  property_ms_max,
);

test('a consumer that joins gets its share of the chats, and the other chats stay with their consumers', async () => {
  await emptied(client);
  const world = new ConsumerWorld(client);
  const chats = 200;
  const who = new Map<number, Name>();
  const round = async (members: readonly Name[]) => {
    for (let chat = 0; chat < chats; chat++) await world.add(chat);
    const moved: Name[] = [];
    while ((await world.pending()).size > 0)
      for (const name of members)
        for (const id of await world.poll(name, 100, false)) {
          const chat = world.chatOf.get(id) as number;
          if (who.get(chat) !== name) moved.push(name);
          who.set(chat, name);
        }
    return moved;
  };
  expect(await world.poll('a', 100, false)).toEqual([]);
  expect(await world.poll('b', 100, false)).toEqual([]);
  const first = await round(['a', 'b']);
  expect(first).toHaveLength(chats);
  expect(first.filter((name) => name === 'a').length).toBeGreaterThan(chats / 4);
  expect(first.filter((name) => name === 'b').length).toBeGreaterThan(chats / 4);
  expect(await round(['a', 'b'])).toEqual([]);
  await world.poll('c', 100, false);
  const moved = await round(['a', 'b', 'c']);
  expect(new Set(moved)).toEqual(new Set(['c']));
  expect(moved.length).toBeGreaterThan(chats / 6);
  expect(moved.length).toBeLessThan(chats / 2);
});

test('consumers that join while updates are pending get a share of the pending updates', async () => {
  await emptied(client);
  const world = new ConsumerWorld(client);
  for (let i = 0; i < 600; i++) await world.add(i % 60);
  // The first consumer gets the first updates before the others start. A single consumer would need 30 rounds for all
  // updates. Three consumers with equal shares would need 10 rounds.
  let rounds = 0;
  for (; (await world.pending()).size > 0; rounds++)
    for (const name of names) await world.poll(name, 20, false);
  expect(world.seen.size).toBe(600);
  expect(rounds).toBeLessThan(18);
});

test('when updates are removed from the queue, they are also removed from the assignments of a consumer that does not read', async () => {
  await emptied(client);
  const world = new ConsumerWorld(client);
  // Consumer `a` gets chat 1 and does not read again. All later updates are from chat 1, and consumer `b` reads the
  // queue.
  await world.add(1);
  await world.poll('a', 1, false);
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 100; i++) await world.add(1);
    await world.poll('b', 100, false);
    await client.xtrim(keys.queue(bot), 'MAXLEN', 50);
  }
  const left = await client.xlen(keys.queue(bot));
  expect(left).toBe(50);
  expect(await client.zcard(keys.unsent(bot))).toBeLessThanOrEqual(left + limits.updates_batch_max);
  expect(await client.zcard(keys.assigned(bot))).toBe(1);
  expect(await client.hgetall(keys.holders(bot))).toEqual({
    [`${bot}.1`]: expect.stringMatching(/^a \d{1,3}$/),
  });
});

test('a step that finds no update for its consumer runs few commands, even if many other consumers wait', async () => {
  await emptied(client);
  const names = Array.from({ length: limits.consumers_max }, (_, i) => `c${i}`);
  for (const name of names) await step(client, { name, poll: name, lease });
  const counted = async () => {
    const found = String(await client.info('commandstats')).matchAll(/cmdstat_(\S+):calls=(\d+)/g);
    return new Map([...found].map(([, name, calls]) => [name, Number(calls)]));
  };
  const before = await counted();
  for (const name of names) await step(client, { name, poll: name, lease, first: false });
  const commands = [...(await counted())].map(
    ([name, calls]) => [name, (calls - (before.get(name) ?? 0)) / names.length] as const,
  );
  const more = commands.filter(([name, calls]) => calls > 0 && name !== 'info' && name !== 'evalsha');
  expect(more.reduce((sum, [, calls]) => sum + calls, 0)).toBeLessThan(12);
  const end = Number(await client.zscore(keys.consumers(bot), 'c0'));
  await expect
    .poll(async () => {
      await step(client, { name: 'c0', poll: 'c0', lease, first: false });
      return Number(await client.zscore(keys.consumers(bot), 'c0'));
    })
    .toBeGreaterThan(end);
});
