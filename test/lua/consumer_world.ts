/**
 * Calls the scripts that divide a queue among consumers. Also simulates a bot with three processes, for random
 * histories.
 */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import type { Script } from '../../src/redis/scripts/contract.js';
import { open, queue } from './update_world.js';
import { bot, callScript, keys, type Seed, scripts, seeds } from './world.js';

export const consumerKeys = {
  ...queue,
  ...{ consumers: keys.consumers(bot), consumption: keys.consumption(bot) },
  ...{ assigned: keys.assigned(bot), unsent: keys.unsent(bot), holders: keys.holders(bot) },
};

export const stepArgs = (args = {}) => ({
  ...{
    bot: `${bot}`,
    name: 'a',
    poll: 'mine',
    first: true,
    offset: '0',
    limit: '100',
    mask: '',
    lease: '4000',
  },
  ...args,
});

/** Runs the script of one poll or stream step. `args` replace the default arguments. */
export const step = (client: Redis, args = {}): Promise<unknown[]> =>
  callScript(client, scripts.get('updates/consume') as Script, consumerKeys, stepArgs(args));

/**
 * Runs a step before the tested step, with a slightly shorter lease. The tested step then changes the end of the lease
 * even if both steps run in the same millisecond.
 */
export const stepped =
  (args = {}): Seed =>
  (client) =>
    step(client, { lease: '3990', ...args });

/** Sets the end of the lease of a consumer to a time in the past. */
export const lapsed =
  (name: string): Seed =>
  (client) =>
    client.zadd(keys.consumers(bot), Date.now() - 1, name);

export const confirm = (client: Redis, name: string, offset: number): Promise<unknown[]> =>
  callScript(client, scripts.get('updates/confirm') as Script, consumerKeys, { name, offset: `${offset}` });

/** The lease in ms. It is so long that no lease ends by itself during a test, even on a slow machine. */
export const lease = '600000';
export const names = ['a', 'b', 'c'] as const;
export type Name = (typeof names)[number];

/** Deletes everything in this Redis, and opens a bot with an empty queue. */
export async function emptied(client: Redis): Promise<void> {
  await client.flushall();
  for (const seed of [open(), seeds.queue({ seq: 100 })]) await seed(client);
}

const idsOf = (rows: unknown) => (rows as [Buffer][]).map(([id]) => Number.parseInt(String(id), 10));

/** A bot with three processes, and the updates that each process has seen. */
export class ConsumerWorld {
  readonly client: Redis;
  readonly offsets: Record<Name, number> = { a: 0, b: 0, c: 0 };
  readonly chatOf = new Map<number, number>();
  readonly seen = new Set<number>();
  /** The updates that each process has seen since its start. */
  readonly seenBy: Record<Name, Set<number>> = { a: new Set(), b: new Set(), c: new Set() };
  /**
   * The consumer that got each update last. Updates of a consumer without a lease are left out, because another
   * consumer may get them.
   */
  readonly got = new Map<number, Name>();
  /** The number of unconfirmed updates of a consumer after the last step. */
  held = 0;
  #last = 100;
  #polls = 0;

  constructor(client: Redis) {
    this.client = client;
  }

  async add(chat: number): Promise<void> {
    this.#last++;
    this.chatOf.set(this.#last, chat);
    await seeds.entry(this.#last, { c: `${bot}.${chat}` })(this.client);
    await this.client.hset(keys.queueState(bot), 'seq', this.#last);
  }

  async pending(): Promise<Set<number>> {
    return new Set(
      (await this.client.xrange(keys.queue(bot), '-', '+')).map(([id]) => Number.parseInt(id, 10)),
    );
  }

  newPoll(): string {
    return `p${++this.#polls}`;
  }

  /**
   * Runs the script of a poll, and calls it again while it asks for another call. The later calls also get the
   * arguments in `more`. Returns the ids of the updates, or null if another poll has ended this poll.
   */
  async take(name: Name, args: object, more: object = {}): Promise<number[] | null> {
    const before = await this.pending();
    let call: { first?: boolean } = args;
    let answer = await step(this.client, call);
    while (answer[2] === 1 || answer[0] === 'lapsed') {
      const lapsed = answer[0] === 'lapsed';
      if (lapsed) this.lapse(name);
      const startsAgain = lapsed || call.first !== false;
      call = { ...call, ...(startsAgain ? more : {}), first: lapsed };
      answer = await step(this.client, call);
    }
    if (answer[0] === 'terminated') return null;
    expect(answer[0]).toBe('ok');
    this.held = answer[5] as number;
    const ids = idsOf(answer[1]);
    const pending = await this.pending();
    this.expectSeen(name, before, pending);
    for (const id of ids) {
      for (const other of pending) {
        const holder = this.chatOf.get(other) === this.chatOf.get(id) ? this.got.get(other) : undefined;
        expect(holder ?? name, `consumer with the chat of update ${id}`).toBe(name);
      }
    }
    for (const id of ids) this.got.set(id, name);
    return ids;
  }

  /**
   * Called when the consumer has lost its lease. A world with streams overrides this, because a stream then begins
   * again.
   */
  lapse(_name: Name): void {}

  /**
   * Checks that the process has seen all updates that have left the queue. These are the updates in `before` that are
   * not in `pending`.
   */
  expectSeen(name: Name, before: ReadonlySet<number>, pending: ReadonlySet<number>): void {
    for (const id of before) if (!pending.has(id)) expect(this.seenBy[name], `seen by ${name}`).toContain(id);
  }

  /** Makes a process receive updates. Its next poll confirms them. */
  receive(name: Name, ids: readonly number[]): void {
    this.see(ids);
    for (const id of ids) this.seenBy[name].add(id);
    const last = ids.at(-1);
    if (last !== undefined) this.offsets[name] = last + 1;
  }

  see(ids: readonly number[]): void {
    expect(ids).toEqual([...ids].sort((one, other) => one - other));
    for (const id of ids) {
      for (const [other, chat] of this.chatOf)
        if (other < id && chat === this.chatOf.get(id))
          expect(this.seen, `before update ${id}`).toContain(other);
      this.seen.add(id);
    }
  }

  /** Makes a poll. If `lost`, the process does not receive the answer. */
  async poll(name: Name, limit: number, lost: boolean, poll = this.newPoll()): Promise<number[]> {
    const args = { name, poll, lease, limit: `${limit}`, offset: `${this.offsets[name]}` };
    const ids = (await this.take(name, args)) as number[];
    if (!lost) this.receive(name, ids);
    return ids;
  }

  /** Ends the lease of a process. */
  async pause(name: Name): Promise<void> {
    for (const [id, holder] of this.got) if (holder === name) this.got.delete(id);
    if ((await this.client.zscore(keys.consumers(bot), name)) !== null)
      await this.client.zadd(keys.consumers(bot), 'XX', Math.min(Date.now() - 1, 1), name);
  }

  /** Restarts a process. The process has then forgotten the updates that it saw. */
  async restart(name: Name): Promise<void> {
    this.offsets[name] = 0;
    this.seenBy[name].clear();
    await this.pause(name);
  }

  /** Reads the queue by a poll without a consumer name, after all leases have ended. */
  async plain(): Promise<void> {
    for (const name of names) await this.pause(name);
    await this.client.hset(keys.queueState(bot), 'poll', '*1');
    const args = { bot: `${bot}`, poll: this.newPoll(), first: true, offset: '', limit: '100', mask: '' };
    const script = scripts.get('updates/poll') as Script;
    const [status, rows] = await callScript(this.client, script, consumerKeys, args);
    expect(status).toBe('ok');
    this.see(idsOf(rows));
  }

  /**
   * Lets all processes read until the queue is empty. Expects that nothing was lost, and that no assignment is left.
   */
  async finish(read: (name: Name) => Promise<unknown>): Promise<void> {
    for (let round = 0; round < 40 && (await this.pending()).size > 0; round++)
      for (const name of names) await read(name);
    expect(await this.pending()).toEqual(new Set());
    expect(this.seen).toEqual(new Set(this.chatOf.keys()));
    expect(await this.client.exists(keys.holders(bot), keys.assigned(bot), keys.unsent(bot))).toBe(0);
  }
}
