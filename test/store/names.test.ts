/**
 * Tests changes of bots’ names and descriptions. The tests force the order of events. After a setter has returned, no
 * node shows the old text.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { pack, unpack } from '../../src/store/core/codec.js';
import { eventually, gate } from '../journal/support.js';
import { RunningTime } from '../support/running_time.js';
import {
  evict,
  makeBot,
  makeUser,
  type Person,
  pass,
  startCluster,
  type TestCluster,
  type TestNode,
  within,
} from '../support/store.js';
import { fastest } from '../support/times.js';

let time: RunningTime;
let cluster: TestCluster;
let a: TestNode;
let b: TestNode;
let bot: Person;

const leaseMs = limits.auth_lease_ms + limits.auth_lease_margin_ms;
const rename = (node: TestNode, name: string) => node.store.bots.setTexts(bot.id, { name: { '': name } });
const describeAs = (node: TestNode, text: string) =>
  node.store.bots.setTexts(bot.id, { description: { '': text } });
const nameOn = async (node: TestNode) => (await node.store.bots.profile(bot.id, null))?.n;
/** Returns the name that the node has cached, or null if the node must ask Redis. */
const fromMemory = (node: TestNode) => {
  const known = node.store.auth.botById(bot.id);
  if (!(known instanceof Promise)) return known?.name;
  known.catch(() => undefined);
  return null;
};

beforeEach(async () => {
  time = new RunningTime();
  cluster = await startCluster(2, undefined, time);
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
  await Promise.all([a.store.auth.start(), b.store.auth.start()]);
  bot = await makeBot(b, await makeUser(b));
  // A node that has been connected to Redis for less than one lease needs a whole lease for each change. Lets this
  // lease pass before the tests.
  await pass(time, leaseMs, [a, b]);
});
afterEach(() => cluster.close());

describe('a node caches bot names', () => {
  test('when a bot is renamed, its cache entries by token and by id change immediately', async () => {
    await a.store.auth.bot(bot.token);
    // One look-up fills both cache entries of the bot: the entry by token and the entry by id.
    expect(fromMemory(a)).toBe('Bot');
    const took = await fastest(limits.auth_lease_ms / 2, async (index) => {
      await rename(b, `Newer ${index}`);
      await nameOn(a);
    });
    expect(took).toBeLessThan(limits.auth_lease_ms / 2);
    await rename(b, 'New');
    expect(fromMemory(a)).toBeNull();
    expect(await nameOn(a)).toBe('New');
    expect(fromMemory(a)).toBe('New');
    expect(await a.store.auth.bot(bot.token)).toMatchObject({ name: 'New' });
  });

  test('a bot name is not cached after a rename if it was read before the rename', async () => {
    const held = gate();
    a.store.auth.beforeRemember = () => held.wait();
    const looked = nameOn(a);
    await held.reached;
    await rename(b, 'New');
    held.open();
    await looked;
    expect(fromMemory(a)).toBeNull();
  });

  test('renaming a bot takes effect only after the lease of a node that cannot renew it has expired', async () => {
    await nameOn(a);
    const cut = gate();
    a.hooks.call = async (name, run) => {
      if (name === 'auth/renew') await cut.wait();
      return run();
    };
    await cut.reached;
    const renamed = rename(b, 'New');
    expect(await within(limits.auth_lease_ms / 4, renamed)).toBe('late');
    expect(fromMemory(a)).toBe('Bot');
    await renamed;
    expect(fromMemory(a)).toBeNull();
    expect(await nameOn(a)).toBe('New');
    cut.open();
  });

  test('a node without a lease caches no bot name', async () => {
    const worker = await cluster.node();
    expect(await nameOn(worker)).toBe('Bot');
    await rename(b, 'New');
    expect(await nameOn(worker)).toBe('New');
  });
});

describe('delayed writes do not overwrite newer copies of bots in Redis', () => {
  const copied = async (node: TestNode) => (await node.store.bots.descriptions(bot.id)).description[''];

  test.each([true, false])(
    "a delayed refresh of a bot's copy does not undo a later refresh (copy present: %s)",
    async (there) => {
      if (there) await copied(a);
      const late = gate();
      a.hooks.call = async (name, run) => {
        if (name === 'control/write') await late.wait();
        return run();
      };
      const first = describeAs(a, 'first');
      await late.reached;
      await describeAs(b, 'second');
      late.open();
      await first;
      for (const node of [a, b]) expect(await copied(node)).toBe('second');
    },
  );

  test('a value that was read before a change does not overwrite a newer copy in Redis', async () => {
    await describeAs(b, 'first');
    await evict(b, cluster.keys.descriptions(bot.id));
    const late = gate();
    a.hooks.call = async (name, run) => {
      if (name === 'control/write') await late.wait();
      return run();
    };
    const reading = copied(a);
    await late.reached;
    await describeAs(b, 'second');
    late.open();
    await reading;
    for (const node of [a, b]) expect(await copied(node)).toBe('second');
  });

  test("a change of a bot's name does not change the copy of the bot's descriptions, because this copy has a separate version", async () => {
    await describeAs(b, 'first');
    const bytes = () => b.connection.client.getBuffer(cluster.keys.descriptions(bot.id));
    const before = await bytes();
    await rename(b, 'New');
    await a.store.bots.setCommands(bot.id, 'default|', [{ command: 'x', description: 'x' }]);
    expect(await bytes()).toEqual(before);
  });

  test('if a process dies between the commit and the refresh of the copies, the sweep refreshes the copies', async () => {
    await Promise.all([nameOn(a), copied(a)]);
    b.hooks.call = async (name, run) => {
      if (name.startsWith('control/')) throw new Error('the process died');
      return run();
    };
    await expect(rename(b, 'New')).rejects.toThrow('died');
    await expect(describeAs(b, 'new')).rejects.toThrow('died');
    expect([await nameOn(a), await copied(a)]).toEqual(['Bot', undefined]);
    await sleep(1_000);
    a.store.sweep.start();
    await eventually('refreshed', async () => (await copied(a)) === 'new' && (await nameOn(a)) === 'New');
    expect(await a.store.auth.bot(bot.token)).toMatchObject({ name: 'New' });
  });

  test('a node can read a cached bot from an older release, in which bots had no localised names', async () => {
    const key = cluster.keys.bot(bot.id);
    await nameOn(b);
    const fields = unpack<unknown[]>((await b.connection.client.getBuffer(key)) as Buffer);
    await b.connection.client.set(key, pack(fields.slice(0, -1)));
    const worker = await cluster.node();
    expect(await worker.store.bots.profile(bot.id, 'ru')).toMatchObject({ n: 'Bot' });
  });
});
