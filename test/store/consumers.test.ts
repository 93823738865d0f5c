/** Tests polls with a consumer name on several nodes (decision 0067). */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { directChat } from '../../src/store/core/keys.js';
import { storeLimits as limits } from '../../src/store/limits.js';
import type { UpdateEntry } from '../../src/store/updates/queues.js';
import { systemTime } from '../../src/time.js';
import { eventually } from '../journal/support.js';
import {
  makeDirect,
  makeUser,
  type Person,
  poll,
  shown,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

const leaseMs = limits.consumer_lease_s_default * 1_000;
let cluster: TestCluster;
let a: TestNode;
let b: TestNode;
let bot: Person;
let people: Person[];

beforeAll(async () => {
  cluster = await startCluster(2);
});
beforeEach(async () => {
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
  const made = await makeDirect(b);
  bot = made.bot;
  people = [made.user];
  while (people.length < 16) {
    const user = await makeUser(b);
    await b.store.chats.openDirect(bot.id, user.id);
    people.push(user);
  }
});
afterAll(() => cluster.close());

interface Given {
  readonly offset?: number;
  readonly timeout?: number;
  readonly leaseMs?: number;
  readonly limit?: number;
  readonly onGone?: (listener: () => void) => void;
}

const take = (node: TestNode, name: string, given: Given = {}): Promise<UpdateEntry[]> =>
  node.store.polls.poll(bot.id, {
    ...{ offset: 0, limit: 100, timeout: 0, mask: null, onGone: () => undefined, ...given },
    consumer: { name, leaseMs: given.leaseMs ?? leaseMs },
  });
const say = (from: Person, value: string) =>
  b.store.messages.send(directChat(bot.id, from.id), from.sender, text(value));
const sayAll = async (value: string) => {
  for (const [i, person] of people.entries()) await say(person, `${value} ${i}`);
};
const after = (updates: readonly UpdateEntry[]) => (updates.at(-1)?.updateId ?? 0) + 1;
const pending = async () => (await b.store.queues.info(bot.id)).pending;

/** Starts one long poll for each name, alternately on two nodes, and waits until all these polls are waiting. */
async function waiting(names: readonly string[], given: Given = {}) {
  const answers = names.map((name, i) =>
    take(i % 2 === 0 ? a : b, name, { timeout: 20, ...given }).catch((error: unknown) => error),
  );
  await eventually('waiting', () => a.store.polls.waiting() + b.store.polls.waiting() === names.length);
  return answers as Array<Promise<UpdateEntry[]>>;
}

test('consumers on two nodes share the updates, and each chat goes to one consumer', async () => {
  const names = ['one', 'two', 'three'];
  for (const name of names) expect(await take(a, name)).toEqual([]);
  const who = new Map<string, string>();
  for (const round of ['first', 'second']) {
    await sayAll(round);
    const got: string[] = [];
    for (const [i, name] of names.entries()) {
      const updates = await take(i % 2 === 0 ? a : b, name);
      for (const each of shown(updates)) {
        const person = each.split(' ')[1] as string;
        expect(who.get(person) ?? name).toBe(name);
        who.set(person, name);
        got.push(each);
      }
      await take(b, name, { offset: after(updates) });
    }
    expect(got.sort()).toEqual(people.map((_, i) => `${round} ${i}`).sort());
    expect(await pending()).toBe(0);
  }
  expect(new Set(who.values())).toEqual(new Set(names));
});

test('waiting consumers immediately get the new updates of their own chats, and no other updates', async () => {
  const answers = await waiting(['one', 'two']);
  await sayAll('hello');
  const got = (await Promise.all(answers)).flat();
  expect(got.length).toBeGreaterThanOrEqual(2);
  const rest = (await Promise.all(['one', 'two'].map((name) => take(a, name)))).flat();
  expect(new Set([...shown(got), ...shown(rest)])).toEqual(new Set(people.map((_, i) => `hello ${i}`)));
});

test('if the hint about an update is lost, a waiting consumer finds the update within a second', async () => {
  a.hooks.hint = () => false;
  const [answer] = await waiting(['one']);
  const begun = performance.now();
  await say(people[0] as Person, 'hello');
  expect(shown((await answer) as UpdateEntry[])).toEqual(['hello']);
  expect(performance.now() - begun).toBeLessThan(10 * limits.poll_tick_ms);
});

test('the chats of a dead consumer move to a waiting consumer within five seconds, and unconfirmed updates come first', async () => {
  await take(a, 'dies');
  await take(b, 'lives');
  await sayAll('first');
  const lost = await take(a, 'dies');
  const own = await take(b, 'lives');
  expect([lost.length > 0, own.length > 0]).toEqual([true, true]);
  const begun = performance.now();
  await sayAll('second');
  // Consumer `lives` gets the updates of its own chats immediately. It polls until it also gets the updates of the dead
  // consumer’s chats.
  const got: UpdateEntry[] = [];
  let offset = after(own);
  while (got.length < people.length + lost.length) {
    const updates = await take(b, 'lives', { offset, timeout: 20 });
    got.push(...updates);
    offset = after(updates);
  }
  // The lease of the dead consumer ends after four seconds. A busy machine may add some time.
  expect(performance.now() - begun).toBeLessThan(10_000);
  const moved = got.filter(({ updateId }) => lost.some((each) => each.updateId === updateId));
  expect(moved.map(({ updateId }) => updateId)).toEqual(lost.map(({ updateId }) => updateId));
  for (const each of lost) {
    const person = String(each.message.record.content.text).split(' ')[1];
    const place = (value: string) => shown(got).indexOf(`${value} ${person}`);
    expect(place('first')).toBeLessThan(place('second'));
  }
  await take(b, 'lives', { offset });
  expect(await pending()).toBe(0);
});

test('if a consumer returns after its chats have moved, its offset confirms no updates of these chats', async () => {
  await say(people[0] as Person, 'once');
  const got = await take(a, 'late', { leaseMs: 200 });
  const [moved] = await waiting(['other']);
  expect(shown((await moved) as UpdateEntry[])).toEqual(['once']);
  expect(await take(a, 'late', { offset: after(got) })).toEqual([]);
  expect(await pending()).toBe(1);
  expect(await take(b, 'other', { offset: after(got) })).toEqual([]);
  expect(await pending()).toBe(0);
});

test('a consumer with a longer lease keeps its chats while it processes updates', async () => {
  await say(people[0] as Person, 'slow');
  const got = await take(a, 'slow', { leaseMs: 60_000 });
  const other = take(b, 'other', { timeout: 6 });
  expect(await other).toEqual([]);
  expect(await take(a, 'slow', { offset: after(got) })).toEqual([]);
  expect(await pending()).toBe(0);
});

test('updates in a lost answer are returned again, even if the consumer sends a later offset', async () => {
  await say(people[0] as Person, 'early');
  const early = await take(a, 'dies', { leaseMs: 200 });
  await say(people[1] as Person, 'later');
  const offset = after(early) + 1;
  // Each of these answers is lost, as if the front had died. An offset proves that the client saw an update only if the
  // offset is just above the id of this update.
  const answers = [];
  for (let times = 0; times < 3; times++) {
    await expect.poll(() => take(b, 'other', { offset }).then(shown)).toContain('early');
    answers.push(shown(await take(b, 'other', { offset })));
  }
  expect(answers.at(-1)).toEqual(['early']);
  expect(await take(b, 'other', { offset: after(early) })).toEqual([]);
  expect(await pending()).toBe(0);
});

test("a newer poll of a consumer ends the consumer's older poll, but no poll of another consumer", async () => {
  const [older, other] = await waiting(['one', 'two']);
  const newer = take(b, 'one', { timeout: 20 });
  expect(await older).toMatchObject({ kind: 'poll_terminated_by_poll' });
  await sayAll('hello');
  const got = (await Promise.all([newer, other])) as UpdateEntry[][];
  expect(got.every((updates) => updates.length > 0)).toBe(true);
});

test('a poll without a consumer ends when a consumer polls, and is refused until all leases of consumers have ended', async () => {
  const plain = poll(a, bot, 0, 20).catch((error: unknown) => error);
  await eventually('waiting', () => a.store.polls.waiting() === 1);
  await take(b, 'one', { leaseMs: 500 });
  expect(await plain).toMatchObject({ kind: 'poll_terminated_by_poll' });
  await say(people[0] as Person, 'hello');
  expect(shown(await take(b, 'one', { leaseMs: 500 }))).toEqual(['hello']);
  await expect(poll(a, bot)).rejects.toMatchObject({ kind: 'poll_while_consumers' });
  await expect.poll(() => poll(a, bot).then(shown, () => 'refused')).toEqual(['hello']);
  expect(await poll(a, bot, after(await poll(a, bot)))).toEqual([]);
  expect(await pending()).toBe(0);
});

test('a webhook ends the polls of consumers, and later polls get the updates that were not delivered to the webhook', async () => {
  await sayAll('hello');
  const got = await take(a, 'one');
  const settings = {
    ...{ url: 'https://example.com/hook', secretToken: null, certificate: null },
    ...{ maxConnections: 1, address: '192.0.2.1' },
  };
  const [waits] = await waiting(['two']);
  await b.store.webhooks.set(bot.id, settings, { drop: false, mask: null });
  expect(await waits).toMatchObject({ kind: 'poll_terminated_by_webhook' });
  await expect(take(a, 'one')).rejects.toMatchObject({ kind: 'poll_while_webhook' });
  await b.store.webhooks.remove(bot.id, false);
  const again = [...(await take(a, 'one')), ...(await take(b, 'two'))];
  expect(again).toHaveLength(people.length);
  expect(got.length).toBeLessThanOrEqual(again.length);
});

test('a call that drops pending updates drops the updates of all consumers, and waiting polls continue', async () => {
  await take(a, 'one');
  await take(b, 'two');
  await sayAll('old');
  const [one, two] = [await take(a, 'one'), await take(b, 'two')];
  const answers = await waiting(['three']);
  await b.store.webhooks.remove(bot.id, true);
  expect(await pending()).toBe(0);
  await sayAll('new');
  const names = ['one', 'two', 'three'];
  const got = [
    ...(await take(a, 'one', { offset: after(one) })),
    ...(await take(b, 'two', { offset: after(two) })),
    ...((await answers[0]) as UpdateEntry[]),
  ];
  for (const name of names) got.push(...(await take(a, name)));
  expect(new Set(shown(got))).toEqual(new Set(people.map((_, i) => `new ${i}`)));
});

test('a bot has at most 64 consumers at a time', async () => {
  for (let i = 0; i < limits.consumers_max; i++) await take(a, `c${i}`, { leaseMs: 60_000 });
  await expect(take(b, 'c64')).rejects.toMatchObject({ kind: 'too_many_requests' });
  expect(await take(b, 'c0', { leaseMs: 60_000 })).toEqual([]);
});

test('a waiting consumer pauses longer between two steps if the bot has many consumers', async () => {
  const others = Array.from({ length: 19 }, (_, i) => `c${i}`);
  for (const name of others) await take(a, name, { leaseMs: 60_000 });
  const sleep = vi.spyOn(systemTime, 'sleep');
  const waits = take(b, 'waits', { timeout: 2 });
  await eventually('paused', () => sleep.mock.calls.some(([ms]) => ms === 20 * limits.consumer_pause_ms));
  sleep.mockRestore();
  expect(await waits).toEqual([]);
});

test('all data about consumers expires', async () => {
  await sayAll('hello');
  await take(a, 'one', { limit: 1 });
  await take(b, 'two');
  const { client } = a.connection;
  const { keys } = cluster;
  for (const key of [keys.consumers, keys.consumption, keys.assigned, keys.unsent, keys.holders]) {
    const left = await client.pttl(key(bot.id));
    expect(left).toBeGreaterThan(limits.consumers_ttl_ms / 2);
    expect(left).toBeLessThanOrEqual(limits.consumers_ttl_ms);
  }
});

test('one poll returns the update of a consumer even if many updates of other consumers come before it', async () => {
  await take(a, 'one', { leaseMs: 60_000 });
  await take(b, 'two', { leaseMs: 60_000 });
  await sayAll('first');
  const got = await take(a, 'one', { leaseMs: 60_000 });
  const ofOne = people.filter(({ id }) => got.some(({ message }) => message.chat.user === id));
  expect(ofOne.length).toBeGreaterThan(0);
  expect(ofOne.length).toBeLessThan(people.length);
  const other = people.find((person) => !ofOne.includes(person)) as Person;
  for (let i = 0; i < 2 * limits.updates_batch_max + 10; i++) await say(other, `${i}`);
  await say(ofOne[0] as Person, 'mine');
  expect(shown(await take(a, 'one', { offset: after(got) }))).toEqual(['mine']);
});
