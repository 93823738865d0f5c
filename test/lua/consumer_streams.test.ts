/**
 * Compares random histories of consumers that have streams with what their users may rely on: no update is lost even if
 * connections break, the updates of a chat come in order, and to one consumer at a time.
 */
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Script } from '../../src/redis/scripts/contract.js';
import { confirm, consumerKeys, step } from './consumer_world.js';
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
  | { readonly do: 'poll'; readonly name: Name; readonly limit: number; readonly lost: boolean }
  | { readonly do: 'pause' | 'restart'; readonly name: Name }
  | { readonly do: 'stream'; readonly name: Name; readonly resumes: boolean; readonly limit: number }
  | { readonly do: 'follow'; readonly name: Name; readonly arrive: number }
  | { readonly do: 'confirm'; readonly name: Name; readonly late: boolean }
  | { readonly do: 'plain' };

/** A stream: the name of its poll, its limit, the last update that it sent, and what its client has not received. */
interface Stream {
  readonly poll: string;
  readonly limit: number;
  last: number;
  readonly pipe: number[];
}

const added = fc.record({ do: fc.constant('add' as const), chat: fc.nat(4) });
const plain = fc.constant({ do: 'plain' as const });
const actsOf = (of: readonly Name[]) => {
  const name = fc.constantFrom(...of);
  return {
    poll: fc.record({
      ...{
        do: fc.constant('poll' as const),
        name,
        limit: fc.integer({ min: 1, max: 6 }),
        lost: fc.boolean(),
      },
    }),
    leave: fc.record({ do: fc.constantFrom('pause' as const, 'restart' as const), name }),
    stream: fc.record({
      ...{ do: fc.constant('stream' as const), name, resumes: fc.boolean() },
      limit: fc.integer({ min: 1, max: 6 }),
    }),
    follow: fc.record({ do: fc.constant('follow' as const), name, arrive: fc.constantFrom(0, 0, 1, 2) }),
    confirm: fc.record({ do: fc.constant('confirm' as const), name, late: fc.boolean() }),
  };
};

/** Histories of streams, also with polls of the same consumers. */
function historiesOf(polls: boolean): fc.Arbitrary<Act[]> {
  const { poll, leave, stream, follow, confirm } = actsOf(polls ? names : ['a', 'b']);
  const act = fc.oneof(
    { weight: 4, arbitrary: added },
    { weight: 2, arbitrary: leave },
    { weight: 2, arbitrary: stream },
    { weight: 10, arbitrary: follow },
    { weight: 4, arbitrary: confirm },
    ...(polls
      ? [
          { weight: 1, arbitrary: plain },
          { weight: 8, arbitrary: poll },
        ]
      : []),
  );
  return fc.array<Act>(act, { minLength: 1, maxLength: 60, size: 'max' });
}

/** A bot with three processes, and what it has seen. */
class World {
  readonly offsets: Record<Name, number> = { a: 0, b: 0, c: 0 };
  readonly chatOf = new Map<number, number>();
  readonly seen = new Set<number>();
  /** What each process has seen since its start. */
  readonly seenBy: Record<Name, Set<number>> = { a: new Set(), b: new Set(), c: new Set() };
  /** Who got an update last. A consumer without a lease may be replaced, so it holds nothing. */
  readonly got = new Map<number, Name>();
  readonly streams = new Map<Name, Stream>();
  #last = 100;
  #polls = 0;

  async add(chat: number): Promise<void> {
    this.#last++;
    this.chatOf.set(this.#last, chat);
    await seeds.entry(this.#last, { c: `${bot}.${chat}` })(client);
    await client.hset(keys.queueState(bot), 'seq', this.#last);
  }

  async pending(): Promise<Set<number>> {
    return new Set((await client.xrange(keys.queue(bot), '-', '+')).map(([id]) => Number.parseInt(id, 10)));
  }

  async poll(name: Name, limit: number, lost: boolean): Promise<number[]> {
    const poll = `p${++this.#polls}`;
    this.streams.delete(name);
    const args = { name, poll, lease, limit: `${limit}`, offset: `${this.offsets[name]}` };
    const ids = (await this.#step(name, args)) as number[];
    if (!lost) this.#see(ids);
    for (const id of lost ? [] : ids) this.seenBy[name].add(id);
    if (!lost && ids.length > 0) this.offsets[name] = (ids.at(-1) as number) + 1;
    return ids;
  }

  /** Performs a step and returns the ids of its updates, or null if another poll has replaced this one. */
  async #step(name: Name, args: object, more: object = {}): Promise<number[] | null> {
    const before = await this.pending();
    let answer = await step(client, args);
    while (answer[2] === 1) answer = await step(client, { ...args, ...more, first: false });
    if (answer[0] === 'terminated') return null;
    expect(answer[0]).toBe('ok');
    const ids = (answer[1] as [Buffer][]).map(([id]) => Number.parseInt(String(id), 10));
    const pending = await this.pending();
    for (const id of before) if (!pending.has(id)) expect(this.seenBy[name], `seen by ${name}`).toContain(id);
    for (const id of ids) {
      for (const other of pending) {
        const holder = this.chatOf.get(other) === this.chatOf.get(id) ? this.got.get(other) : undefined;
        expect(holder ?? name, `consumer with the chat of update ${id}`).toBe(name);
      }
    }
    for (const id of ids) this.got.set(id, name);
    return ids;
  }

  async stream(name: Name, limit: number, resumes: boolean): Promise<void> {
    const poll = `p${++this.#polls}`;
    const last = resumes ? this.offsets[name] - 1 : 0;
    const opened: Stream = { poll, limit, last: Math.max(0, last), pipe: [] };
    this.streams.set(name, opened);
    const args = { name, poll, lease, limit: `${limit} ${opened.last}`, offset: '0' };
    const ids = await this.#step(name, args, { limit: `${limit} 0` });
    this.#send(opened, ids as number[]);
  }

  #send(stream: Stream, ids: readonly number[]): void {
    stream.pipe.push(...ids);
    stream.last = ids.at(-1) ?? stream.last;
  }

  /** Performs a step of a stream. Then its client receives some updates. */
  async follow(name: Name, arrive: number): Promise<void> {
    const stream = this.streams.get(name);
    if (stream === undefined) return;
    const { poll, limit, last } = stream;
    const ids = await this.#step(name, {
      name,
      poll,
      lease,
      first: false,
      limit: `${limit} ${last}`,
      offset: '0',
    });
    if (ids === null) this.streams.delete(name);
    else this.#send(stream, ids);
    for (const id of stream.pipe.splice(0, arrive)) {
      this.#see([id]);
      this.seenBy[name].add(id);
      this.offsets[name] = id + 1;
    }
  }

  /** Confirms what the process has seen. The call may be late, and then has an earlier offset. */
  async confirm(name: Name, late: boolean): Promise<void> {
    const before = await this.pending();
    const seen = [...this.seenBy[name]];
    const offset = late ? (seen.at(-2) ?? 0) + 1 : this.offsets[name];
    expect((await confirm(client, name, offset))[0]).toBe('ok');
    const pending = await this.pending();
    for (const id of before) if (!pending.has(id)) expect(this.seenBy[name], `seen by ${name}`).toContain(id);
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

  /** Gets and confirms everything, by a poll or a stream. */
  async drain(name: Name, byStream: boolean): Promise<void> {
    if (!byStream) return void (await this.poll(name, 100, false));
    if (!this.streams.has(name)) await this.stream(name, 100, false);
    await this.follow(name, 100);
    await this.confirm(name, false);
  }

  async act(act: Act): Promise<void> {
    if (act.do === 'add') return this.add(act.chat);
    if (act.do === 'plain') return this.plain();
    if (act.do === 'poll') return void (await this.poll(act.name, act.limit, act.lost));
    if (act.do === 'stream') return this.stream(act.name, act.limit, act.resumes);
    if (act.do === 'follow') return this.follow(act.name, act.arrive);
    if (act.do === 'confirm') return this.confirm(act.name, act.late);
    if (act.do === 'restart') {
      this.streams.delete(act.name);
      this.offsets[act.name] = 0;
      this.seenBy[act.name].clear();
    }
    return this.pause(act.name);
  }
}

test.each([
  ['streams', false],
  ['polls and streams', true],
])('no history of %s loses an update, breaks the order in a chat, or gets stuck', async (_, polls) => {
  await fc.assert(
    fc.asyncProperty(historiesOf(polls), fc.boolean(), async (history, byStream) => {
      await client.flushall();
      for (const seed of [open(), seeds.queue({ seq: 100 })]) await seed(client);
      const world = new World();
      for (const act of history) await world.act(act);
      for (let round = 0; round < 40 && (await world.pending()).size > 0; round++)
        for (const name of names) await world.drain(name, byStream);
      expect(await world.pending()).toEqual(new Set());
      expect(world.seen).toEqual(new Set(world.chatOf.keys()));
      expect(await client.exists(keys.holders(bot), keys.assigned(bot))).toBe(0);
    }),
    { numRuns: Number(process.env.PETREL_CONSUMER_RUNS ?? 100) },
  );
});
