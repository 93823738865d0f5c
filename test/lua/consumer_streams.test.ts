/**
 * Tests the guarantees for consumers that read by streams, in random histories. No update is lost even if connections
 * break, the updates of a chat arrive in order, and only one consumer at a time gets updates of a chat.
 */
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { property_ms_max, propertyRuns } from '../support/property_runs.js';
import { ConsumerWorld, confirm, emptied, lease, type Name, names } from './consumer_world.js';
import { startClusterNode } from './world.js';

let node: Awaited<ReturnType<typeof startClusterNode>>;
let client: Redis;
beforeAll(async () => {
  node = await startClusterNode();
  client = node.client;
});
afterAll(() => node.stop());

type Act =
  | { readonly do: 'add'; readonly chat: number }
  | { readonly do: 'poll'; readonly name: Name; readonly limit: number; readonly lost: boolean }
  | { readonly do: 'pause' | 'restart'; readonly name: Name }
  | { readonly do: 'stream'; readonly name: Name; readonly resumes: boolean; readonly limit: number }
  | { readonly do: 'follow'; readonly name: Name; readonly arrive: number }
  | { readonly do: 'confirm'; readonly name: Name; readonly late: boolean }
  | { readonly do: 'plain' };

/**
 * A stream: the name of its poll, its limit, the last update that it sent, and the sent updates that its client has not
 * received yet.
 */
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

/** Returns random histories of streams. If `polls` is true, the same consumers also poll. */
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

/** A bot whose processes open streams and make polls. */
class StreamWorld extends ConsumerWorld {
  readonly streams = new Map<Name, Stream>();
  /** How many updates all streams have sent. */
  sent = 0;

  override poll(name: Name, limit: number, lost: boolean): Promise<number[]> {
    this.streams.delete(name);
    return super.poll(name, limit, lost);
  }

  async stream(name: Name, limit: number, resumes: boolean): Promise<void> {
    const poll = this.newPoll();
    const last = resumes ? this.offsets[name] - 1 : 0;
    const opened: Stream = { poll, limit, last: Math.max(0, last), pipe: [] };
    this.streams.set(name, opened);
    const args = { name, poll, lease, limit: `${limit} ${opened.last}`, offset: '0' };
    const ids = await this.take(name, args, { limit: `${limit} 0` });
    if (this.held === 0) opened.last = 0;
    this.#send(opened, ids as number[]);
  }

  #send(stream: Stream, ids: readonly number[]): void {
    stream.pipe.push(...ids);
    this.sent += ids.length;
    stream.last = ids.at(-1) ?? stream.last;
  }

  override lapse(name: Name): void {
    (this.streams.get(name) as Stream).last = 0;
  }

  /**
   * Runs one step of the stream of a process. After the step, the process receives up to `arrive` of the updates in
   * flight.
   */
  async follow(name: Name, arrive: number): Promise<void> {
    const stream = this.streams.get(name);
    if (stream === undefined) return;
    const { poll, limit, last } = stream;
    const args = { name, poll, lease, first: false, limit: `${limit} ${last}`, offset: '0' };
    const ids = await this.take(name, args, { limit: `${limit} 0` });
    if (ids === null) this.streams.delete(name);
    else this.#send(stream, ids);
    for (const id of stream.pipe.splice(0, arrive)) this.receive(name, [id]);
  }

  /** Confirms the updates that the process has seen. If `late` is true, uses an older offset, like a delayed call. */
  async confirm(name: Name, late: boolean): Promise<void> {
    const before = await this.pending();
    const seen = [...this.seenBy[name]];
    const offset = late ? (seen.at(-2) ?? 0) + 1 : this.offsets[name];
    expect((await confirm(this.client, name, offset))[0]).toBe('ok');
    this.expectSeen(name, before, await this.pending());
  }

  override restart(name: Name): Promise<void> {
    this.streams.delete(name);
    return super.restart(name);
  }

  /** Gets and confirms every pending update of the process, by a poll or by a stream. */
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
    if (act.do === 'restart') return this.restart(act.name);
    return this.pause(act.name);
  }
}

test.each([
  ['streams', false],
  ['polls and streams', true],
])(
  'no history of %s loses an update, breaks the order in a chat, or gets stuck',
  async (_, polls) => {
    await fc.assert(
      fc.asyncProperty(historiesOf(polls), fc.boolean(), async (history, byStream) => {
        await emptied(client);
        const world = new StreamWorld(client);
        for (const act of history) await world.act(act);
        await world.finish((name) => world.drain(name, byStream));
      }),
      { numRuns: propertyRuns(100) },
    );
  },
  property_ms_max,
);

test.each([
  ['an open stream', true],
  ['a new stream', false],
])(
  '%s sends the updates of a dead consumer once, although the ids of these updates are not above its cursor',
  async (_, open) => {
    await emptied(client);
    const world = new StreamWorld(client);
    const count = 20;
    await world.add(0);
    await world.poll('a', count, true);
    if (open) await world.stream('b', count, false);
    for (let i = 1; i < count; i++) await world.add(0);
    expect(await world.poll('a', count, true)).toHaveLength(count);
    await world.pause('a');
    if (!open) await world.stream('b', count, false);
    for (let round = 0; round < 2 * count && (await world.pending()).size > 0; round++) {
      await world.follow('b', count);
      await world.confirm('b', false);
    }
    expect(await world.pending()).toEqual(new Set());
    expect(world.sent).toBe(count);
  },
);

test('if a consumer loses an update and gets it again, confirming this update confirms no earlier update', async () => {
  await emptied(client);
  const world = new StreamWorld(client);
  await world.add(0);
  await world.poll('a', 1, true);
  await world.add(2);
  await world.stream('c', 2, false);
  await world.follow('c', 2);
  expect(world.seenBy.c).toEqual(new Set([102]));
  await world.pause('c');
  await world.poll('a', 2, true);
  await world.pause('a');
  await world.stream('c', 2, false);
  await world.confirm('c', false);
  expect(await world.pending()).toEqual(new Set([101]));
});

test('after a poll without a consumer name, the first confirmation of a stream confirms only updates that the bot has seen', async () => {
  await emptied(client);
  const world = new StreamWorld(client);
  await world.add(0);
  await world.poll('a', 1, false);
  await world.add(2);
  await world.poll('c', 1, false);
  expect(world.seenBy).toEqual({ a: new Set([101]), b: new Set(), c: new Set([102]) });
  await world.plain();
  await world.stream('c', 2, false);
  await world.confirm('c', false);
  expect(await world.pending()).toEqual(new Set([101]));
});

test('if a stream loses updates and gets them back in another order, the stream sends all of them again', async () => {
  await emptied(client);
  const world = new StreamWorld(client);
  await world.add(0);
  await world.stream('a', 1, false);
  await world.stream('b', 3, false);
  await world.add(1);
  await world.follow('b', 0);
  expect(world.streams.get('b')?.pipe.splice(0)).toEqual([102]);
  await world.pause('b');
  await world.follow('a', 0);
  await world.follow('b', 0);
  await world.pause('a');
  await world.follow('b', 0);
  expect(world.streams.get('b')?.pipe).toEqual([101, 102]);
});
