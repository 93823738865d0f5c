/** Names and descriptions of bots under forced orders of events: no node shows what was before a setter returned. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { pack, unpack } from '../../src/store/core/codec.js';
import { eventually, gate } from '../journal/support.js';
import {
  evict,
  makeBot,
  makeUser,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
  within,
} from '../support/store.js';

let cluster: TestCluster;
let a: TestNode;
let b: TestNode;
let bot: Person;

const leaseMs = limits.auth_lease_ms + limits.auth_lease_margin_ms;
const rename = (node: TestNode, name: string) => node.store.bots.setTexts(bot.id, { name: { '': name } });
const describeAs = (node: TestNode, text: string) =>
  node.store.bots.setTexts(bot.id, { description: { '': text } });
const nameOn = async (node: TestNode) => (await node.store.bots.profile(bot.id, null))?.n;
/** What the node shows from memory alone; null when it has to ask. */
const fromMemory = (node: TestNode) => {
  const known = node.store.auth.botById(bot.id);
  if (!(known instanceof Promise)) return known?.name;
  known.catch(() => undefined);
  return null;
};

beforeEach(async () => {
  cluster = await startCluster(2);
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
  await Promise.all([a.store.auth.start(), b.store.auth.start()]);
  bot = await makeBot(b, await makeUser(b));
  // Nodes that have known Redis for less than a lease wait the lease out.
  await sleep(leaseMs);
});
afterEach(() => cluster.close());

describe('a name that a node remembers', () => {
  test('by token and by id, and both follow a change at once', async () => {
    await a.store.auth.bot(bot.token);
    // One look-up fills both.
    expect(fromMemory(a)).toBe('Bot');
    const began = performance.now();
    await rename(b, 'New');
    expect(performance.now() - began).toBeLessThan(limits.auth_lease_ms / 2);
    expect(fromMemory(a)).toBeNull();
    expect(await nameOn(a)).toBe('New');
    expect(fromMemory(a)).toBe('New');
    expect(await a.store.auth.bot(bot.token)).toMatchObject({ name: 'New' });
  });

  test('read before the change and about to be remembered after it', async () => {
    const held = gate();
    a.store.auth.beforeRemember = () => held.wait();
    const looked = nameOn(a);
    await held.reached;
    await rename(b, 'New');
    held.open();
    await looked;
    expect(fromMemory(a)).toBeNull();
  });

  test('on a node that cannot renew: the setter waits, and the memory is not trusted afterwards', async () => {
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

  test('a node without a lease remembers nothing', async () => {
    const worker = await cluster.node();
    expect(await nameOn(worker)).toBe('Bot');
    await rename(b, 'New');
    expect(await nameOn(worker)).toBe('New');
  });
});

describe('copies in Redis', () => {
  const copied = async (node: TestNode) => (await node.store.bots.descriptions(bot.id)).description[''];

  test.each([true, false])(
    'a refresh that comes late does not undo a later one (copy there: %s)',
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

  test('a fill that read before a change does not bring back the past', async () => {
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

  test('descriptions have a version of their own: a change of the name leaves their copy alone', async () => {
    await describeAs(b, 'first');
    const bytes = () => b.connection.client.getBuffer(cluster.keys.descriptions(bot.id));
    const before = await bytes();
    await rename(b, 'New');
    await a.store.bots.setCommands(bot.id, 'default|', [{ command: 'x', description: 'x' }]);
    expect(await bytes()).toEqual(before);
  });

  test('a process that dies between commit and refresh leaves the rest to the sweep', async () => {
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

  test('a copy that was made before bots had names by language is read on', async () => {
    const key = cluster.keys.bot(bot.id);
    await nameOn(b);
    const fields = unpack<unknown[]>((await b.connection.client.getBuffer(key)) as Buffer);
    await b.connection.client.set(key, pack(fields.slice(0, -1)));
    const worker = await cluster.node();
    expect(await worker.store.bots.profile(bot.id, 'ru')).toMatchObject({ n: 'Bot' });
  });
});
