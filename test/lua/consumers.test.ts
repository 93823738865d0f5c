/**
 * Compares random histories of consumers with what their users may rely on: no update is lost even if answers are lost,
 * the updates of a chat come in order, and to one consumer at a time.
 */
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Script } from '../../src/redis/scripts/contract.js';
import { storeLimits as limits } from '../../src/store/limits.js';
import { consumerKeys, step } from './consumer_world.js';
import { open } from './update_world.js';
import { bot, callScript, keys, scripts, seeds, startClusterNode } from './world.js';

let node: Awaited<ReturnType<typeof startClusterNode>>;
let client: Redis;
beforeAll(async () => {
  node = await startClusterNode();
  client = node.client;
});
afterAll(() => node.stop());

/** In ms. No lease ends by itself during a test, however slow the machine is. */
const lease = '600000';
const names = ['a', 'b', 'c'] as const;
type Name = (typeof names)[number];
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

/** A bot with three processes, and what it has seen. */
class World {
  readonly offsets: Record<Name, number> = { a: 0, b: 0, c: 0 };
  readonly chatOf = new Map<number, number>();
  readonly seen = new Set<number>();
  /** What each process has seen since its start. */
  readonly seenBy: Record<Name, Set<number>> = { a: new Set(), b: new Set(), c: new Set() };
  /** Who got an update last. A consumer without a lease may be replaced, so it holds nothing. */
  readonly got = new Map<number, Name>();
  #last = 100;
  #polls = 0;
  /** The last poll of each process. It may still wait for updates. */
  readonly #waits: Partial<
    Record<Name, { name: Name; poll: string; lease: string; limit: string; offset: string }>
  > = {};

  async add(chat: number): Promise<void> {
    this.#last++;
    this.chatOf.set(this.#last, chat);
    await seeds.entry(this.#last, { c: `${bot}.${chat}` })(client);
    await client.hset(keys.queueState(bot), 'seq', this.#last);
  }

  async pending(): Promise<Set<number>> {
    return new Set((await client.xrange(keys.queue(bot), '-', '+')).map(([id]) => Number.parseInt(id, 10)));
  }

  async #idsOf(args: object): Promise<number[] | undefined> {
    let answer = await step(client, args);
    while (answer[2] === 1) answer = await step(client, { ...args, first: false });
    if (answer[0] === 'terminated') return undefined;
    expect(answer[0]).toBe('ok');
    return (answer[1] as [Buffer][]).map(([id]) => Number.parseInt(String(id), 10));
  }

  async poll(name: Name, limit: number, lost: boolean): Promise<number[]> {
    const poll = `p${++this.#polls}`;
    this.#waits[name] = { ...{ name, poll, lease }, limit: `${limit}`, offset: `${this.offsets[name]}` };
    return (await this.#take(name, lost, this.#waits[name])) ?? [];
  }

  /** Makes a later step of the last poll. A step that returns nothing must not overlook anything. */
  async wait(name: Name, limit: number, lost: boolean): Promise<void> {
    const args = this.#waits[name];
    if (args === undefined) return;
    const ids = await this.#take(name, lost, { ...args, first: false });
    if (ids?.length === 0) expect(await this.poll(name, limit, false)).toEqual([]);
    else delete this.#waits[name];
  }

  /** Returns undefined if the poll was replaced. */
  async #take(name: Name, lost: boolean, args: object): Promise<number[] | undefined> {
    const before = await this.pending();
    const ids = await this.#idsOf(args);
    if (ids === undefined) return undefined;
    const pending = await this.pending();
    for (const id of before) if (!pending.has(id)) expect(this.seenBy[name], `seen by ${name}`).toContain(id);
    for (const id of ids) {
      for (const other of pending) {
        const holder = this.chatOf.get(other) === this.chatOf.get(id) ? this.got.get(other) : undefined;
        expect(holder ?? name, `consumer with the chat of update ${id}`).toBe(name);
      }
    }
    for (const id of ids) this.got.set(id, name);
    if (!lost) this.#see(ids);
    for (const id of lost ? [] : ids) this.seenBy[name].add(id);
    if (!lost && ids.length > 0) this.offsets[name] = (ids.at(-1) as number) + 1;
    return ids;
  }

  #see(ids: readonly number[]): void {
    expect(ids).toEqual([...ids].sort((one, other) => one - other));
    for (const id of ids) {
      for (const [other, chat] of this.chatOf)
        if (other < id && chat === this.chatOf.get(id))
          expect(this.seen, `before update ${id}`).toContain(other);
      this.seen.add(id);
    }
  }

  async pause(name: Name): Promise<void> {
    for (const [id, holder] of this.got) if (holder === name) this.got.delete(id);
    if ((await client.zscore(keys.consumers(bot), name)) !== null)
      await client.zadd(keys.consumers(bot), 'XX', Math.min(Date.now() - 1, 1), name);
  }

  async plain(): Promise<void> {
    for (const name of names) await this.pause(name);
    await client.hset(keys.queueState(bot), 'poll', '*1');
    const args = {
      bot: `${bot}`,
      poll: `p${++this.#polls}`,
      first: true,
      offset: '',
      limit: '100',
      mask: '',
    };
    const [status, rows] = await callScript(
      client,
      scripts.get('updates/poll') as Script,
      consumerKeys,
      args,
    );
    expect(status).toBe('ok');
    this.#see((rows as [Buffer][]).map(([id]) => Number.parseInt(String(id), 10)));
  }

  async act(act: Act): Promise<void> {
    if (act.do === 'add') return this.add(act.chat);
    if (act.do === 'plain') return this.plain();
    if (act.do === 'poll') return void (await this.poll(act.name, act.limit, act.lost));
    if (act.do === 'wait') return this.wait(act.name, act.limit, act.lost);
    if (act.do === 'restart') {
      this.offsets[act.name] = 0;
      this.seenBy[act.name].clear();
    }
    return this.pause(act.name);
  }
}

test('no history of consumers loses an update, breaks the order in a chat, or gets stuck', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(acts, { minLength: 1, maxLength: 40 }), async (history) => {
      await client.flushall();
      for (const seed of [open(), seeds.queue({ seq: 100 })]) await seed(client);
      const world = new World();
      for (const act of history) await world.act(act);
      for (let round = 0; round < 40 && (await world.pending()).size > 0; round++)
        for (const name of names) await world.poll(name, 100, false);
      expect(await world.pending()).toEqual(new Set());
      expect(world.seen).toEqual(new Set(world.chatOf.keys()));
      expect(await client.exists(keys.holders(bot), keys.assigned(bot))).toBe(0);
    }),
    { numRuns: Number(process.env.PETREL_CONSUMER_RUNS ?? 500) },
  );
});

test('a consumer that joins gets its share of the chats, and no other chat moves', async () => {
  for (const seed of [open(), seeds.queue({ seq: 100 })]) await seed(client);
  const world = new World();
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
  await client.flushall();
  for (const seed of [open(), seeds.queue({ seq: 100 })]) await seed(client);
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

test('updates that left the queue leave the assignments of a consumer that does not read', async () => {
  await client.flushall();
  for (const seed of [open(), seeds.queue({ seq: 100 })]) await seed(client);
  const world = new World();
  // A single consumer holds the chat of many updates, and the other one reads those of all other chats.
  await world.add(1);
  await world.poll('a', 1, false);
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 100; i++) await world.add(1);
    await world.poll('b', 100, false);
    await client.xtrim(keys.queue(bot), 'MAXLEN', 50);
  }
  const left = await client.xlen(keys.queue(bot));
  expect(left).toBe(50);
  expect(await client.zcard(keys.assigned(bot))).toBeLessThanOrEqual(left + limits.updates_batch_max);
  expect(await client.hgetall(keys.holders(bot))).toEqual({
    [`${bot}.1`]: expect.stringMatching(/^a \d{1,3}$/),
  });
});

test('a step of a waiting consumer without news costs a few commands, however many others wait', async () => {
  await client.flushall();
  for (const seed of [open(), seeds.queue({ seq: 100 })]) await seed(client);
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
