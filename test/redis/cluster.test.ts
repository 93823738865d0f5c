/**
 * Tests the whole service on a Redis Cluster: on all masters, without one master, while a slot moves, and after a
 * failover.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKeys } from '../../src/store/core/keys.js';
import { type EventSource, eventually, openEvents } from '../clients/event_source.js';
import { type FreshCluster, freshCluster } from '../support/cluster.js';
import {
  type Answer,
  itemsOf,
  resultOf,
  type Service,
  startService,
  type TestBot,
  type TestUser,
} from '../support/service.js';

const keys = makeKeys(64);
const masters = [0, 1, 2] as const;
const readyz = async (url: string) => (await fetch(`${url}/readyz`)).status;

let cluster: FreshCluster;
let service: Service;
let owner: TestUser;
/** One bot on each master. The owner has a direct chat with each bot. */
let bots: [TestBot, TestBot, TestBot];
let groups: [number, number, number];

const slotOfId = (id: number) => keys.partitions.slots[keys.partitions.of(id)] as number;

async function onEach<T>(make: () => Promise<T>, idOf: (made: T) => number): Promise<[T, T, T]> {
  const found: T[] = [];
  for (let tries = 0; tries < 200; tries++) {
    const made = await make();
    found[await cluster.ownerOf(slotOfId(idOf(made)))] ??= made;
    if (masters.every((i) => found[i] !== undefined)) return found as [T, T, T];
  }
  throw new Error('ids do not spread over the masters');
}

beforeAll(async () => {
  cluster = await freshCluster();
  service = await startService({
    redis: cluster,
    combined: true,
    fronts: 2,
    extraEnv: { JOURNAL_HIGH_WATER: '100000' },
  });
  // Two masters are killed in turn. The owner and all tokens are on the third master.
  do owner = await service.newUser('olga');
  while ((await cluster.ownerOf(slotOfId(owner.id))) !== 0);
  bots = await onEach(
    () => service.newBot(owner, 'b'),
    (bot) => bot.id,
  );
  for (const bot of bots) await service.openChat(owner, bot);
  groups = await onEach(() => service.newGroup(owner, 'g', bots), Number);
}, 90_000);
afterAll(async () => {
  await service?.stop();
});

const say = (bot: TestBot, text: string, front = 0): Promise<Answer> =>
  service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }, front);
const sayInGroup = (group: number, text: string) =>
  service.app(owner, 'POST', `/api/chats/${group}/messages`, { text });

interface Heard {
  readonly ids: number[];
  readonly texts: string[];
}
const offsets = new Map<number, number>();

async function poll(bot: TestBot, received: Heard): Promise<void> {
  const offset = offsets.get(bot.id) ?? 0;
  const answer = await service.bot(bot, 'getUpdates', { offset, timeout: 0 }, 1);
  if (answer.status === 503) return;
  for (const update of await resultOf(answer)) {
    received.ids.push(update.update_id);
    received.texts.push(update.message?.text ?? update.callback_query?.data);
    offsets.set(bot.id, update.update_id + 1);
  }
}

async function history(bot: TestBot): Promise<{ texts: string[]; ids: number[] }> {
  const all: Array<{ text: string; message_id: number }> = [];
  for (let before: number | undefined; ; before = all.at(-1)?.message_id) {
    const query = before === undefined ? '?limit=100' : `?limit=100&before=${before}`;
    const page = await itemsOf(service.app(owner, 'GET', `/api/chats/${bot.id}/messages${query}`));
    all.push(...page);
    if (page.length < 100) break;
  }
  all.reverse();
  return { texts: all.map(({ text }) => text), ids: all.map(({ message_id }) => message_id) };
}

const once = (texts: readonly string[], text: string) => texts.filter((each) => each === text).length;

test('partitions are spread evenly over the masters, and every master runs scripts', async () => {
  const owners = await Promise.all(keys.partitions.slots.map((slot) => cluster.ownerOf(slot)));
  for (const i of masters) expect(owners.filter((each) => each === i).length).toBeGreaterThanOrEqual(21);
  for (const { client } of cluster.nodes) {
    expect(await client.info('commandstats')).toMatch(/cmdstat_evalsha:calls=\d{2}/);
  }
});

test('messages, buttons, streams and revoked tokens work on every master', async () => {
  const events: EventSource = await openEvents(service.fronts[0].url, owner.token);
  for (const bot of bots) {
    const received: Heard = { ids: [], texts: [] };
    await resultOf(say(bot, 'hello'));
    await eventually(async () => {
      await poll(bot, received);
      expect(once(received.texts, 'hello')).toBe(1);
    });
    const sent = await resultOf(
      service.bot(bot, 'sendMessage', {
        chat_id: owner.id,
        text: 'choose',
        reply_markup: { inline_keyboard: [[{ text: 'a', callback_data: 'pressed' }]] },
      }),
    );
    const path = `/api/chats/${bot.id}/messages/${sent.message_id}/callback`;
    await resultOf(service.app(owner, 'POST', path, { data: 'pressed' }));
    await eventually(async () => {
      await poll(bot, received);
      expect(received.texts).toContain('pressed');
    });
    await resultOf(
      service.bot(bot, 'editMessageText', {
        chat_id: owner.id,
        message_id: sent.message_id,
        text: `edited ${bot.id}`,
      }),
    );
    await events.received(
      ({ event, data }) => event === 'edited_message' && data.text === `edited ${bot.id}`,
    );
  }
  events.cut();
  const { id, token } = bots[2];
  await resultOf(service.bot(token, 'getMe', {}, 1));
  bots[2] = await resultOf(service.app(owner, 'POST', `/api/me/bots/${id}/regenerate_token`));
  expect((await service.bot(token, 'getMe', {}, 1)).status).toBe(401);
  await resultOf(service.bot(bots[2], 'getMe', {}, 1));
});

test("a long poll is woken by the master that stores the bot's queue", async () => {
  const took: number[] = [];
  for (const bot of bots) {
    await poll(bot, { ids: [], texts: [] });
    const began = performance.now();
    const waiting = service.bot(bot, 'getUpdates', { offset: offsets.get(bot.id), timeout: 20 }, 1);
    await sleep(300);
    await resultOf(say(bot, 'wake up'));
    const said = performance.now();
    expect(
      (await resultOf(waiting)).map((update: { message?: { text: string } }) => update.message?.text),
    ).toEqual(['wake up']);
    took.push(performance.now() - said);
    expect(performance.now() - began).toBeGreaterThan(250);
  }
  expect(Math.min(...took)).toBeLessThan(1_000);
});

test('bots on all masters get each update of a group once and in order, whichever master stores the group', async () => {
  for (const [i, group] of groups.entries()) {
    const texts = Array.from({ length: 10 }, (_, n) => `/to_all ${i} ${n}`);
    for (const text of texts) await resultOf(sayInGroup(group, text));
    for (const bot of bots) {
      const received: Heard = { ids: [], texts: [] };
      await eventually(async () => {
        await poll(bot, received);
        expect(received.texts.filter((text) => text?.startsWith(`/to_all ${i}`))).toEqual(texts);
      });
    }
  }
});

test('while a slot moves under traffic, no acknowledged message is lost and no id is given out twice', async () => {
  const bot = bots[0];
  const slot = slotOfId(bot.id);
  const acked: string[] = [];
  const refused: string[] = [];
  const warned = (text: string) =>
    service.fronts
      .map((front) => front.log())
      .join('')
      .includes(text);
  const ids: number[] = [];
  const received: Heard = { ids: [], texts: [] };
  let busy = true;
  let round = 0;
  const talk = async (front: number) => {
    while (busy) {
      const text = `moving ${front} ${++round}`;
      const answer = await say(bot, text, front);
      expect([200, 503]).toContain(answer.status);
      if (answer.status === 200) {
        acked.push(text);
        ids.push(answer.body.result.message_id);
      } else {
        refused.push(text);
        expect(answer.body.parameters).toEqual({ retry_after: 1 });
        await sleep(20);
      }
    }
  };
  const listen = async () => {
    while (busy) {
      await poll(bot, received);
      await sleep(20);
    }
  };
  const traffic = Promise.all([talk(0), talk(1), talk(0), listen()]);
  await sleep(500);
  // The slot moves to the other master and back, so each server gets the slot back after others changed it.
  for (const [from, to] of [
    [0, 1],
    [1, 0],
    [0, 2],
  ] as const) {
    await cluster.beginMove(slot, from, to);
    while (!(await cluster.moveKeys(slot, from, to, 20))) await sleep(5);
    await cluster.endMove(slot, to);
    const before = acked.length;
    await eventually(() => expect(acked.length).toBeGreaterThan(before + 20));
  }
  busy = false;
  await traffic;
  await eventually(async () => {
    await poll(bot, received);
    for (const text of acked) expect(once(received.texts, text)).toBe(1);
  });
  const { texts, ids: shown } = await history(bot);
  for (const text of acked) expect(once(texts, text)).toBe(1);
  for (const text of refused) expect(once([...texts, ...received.texts], text)).toBe(0);
  // Almost no call is refused, because calls wait while their slot moves.
  expect(refused.length).toBeLessThanOrEqual(Math.ceil((acked.length + refused.length) / 1_000));
  expect(warned('while its slot migrated')).toBe(true);
  expect(warned('Command queue state error')).toBe(false);
  expect(new Set(ids).size).toBe(ids.length);
  expect(shown).toEqual([...shown].sort((a, b) => a - b));
  expect(received.ids).toEqual([...new Set(received.ids)].sort((a, b) => a - b));
  expect(await cluster.ownerOf(slot)).toBe(2);
  // Each new master got a raised incarnation.
  expect(Math.max(...ids) - Math.min(...ids)).toBeGreaterThan(30_000);
}, 60_000);

test('while one master is down, only its partitions answer 503', async () => {
  const [, dead] = bots;
  const living = bots[2];
  const events = await openEvents(service.fronts[0].url, owner.token);
  await resultOf(say(dead, 'before the end'));
  await sleep(200);
  await cluster.nodes[1]?.kill();
  let round = 0;
  const took: number[] = [];
  const quick = async <T>(call: Promise<T>): Promise<T> => {
    const began = performance.now();
    const result = await call;
    took.push(performance.now() - began);
    return result;
  };
  // A call to the dead master waits for a limited time, and delays no other call.
  const refused = service.bot(dead, 'sendMessage', { chat_id: owner.id, text: 'x' });
  for (const until = performance.now() + 6_500; performance.now() < until; await sleep(20)) {
    const text = `alone ${++round}`;
    await quick(resultOf(service.bot(living, 'sendMessage', { chat_id: owner.id, text })));
    if (round % 50 === 1) await quick(events.received(({ data }) => data.text === text));
    await quick(resultOf(sayInGroup(groups[2], `/out ${round}`)));
  }
  expect((await refused).status).toBe(503);
  expect(round).toBeGreaterThan(20);
  // A call that waited for the dead master would take longer.
  expect(took.sort((a, b) => a - b)[Math.floor(took.length / 2)]).toBeLessThan(1_000);
  for (const front of service.fronts) expect(await readyz(front.url)).toBe(200);
  const received: Heard = { ids: [], texts: [] };
  await eventually(async () => {
    await poll(living, received);
    expect(received.texts).toContain(`/out ${round}`);
  });

  await cluster.nodes[1]?.start();
  await eventually(async () => expect((await say(dead, 'after')).status).toBe(200));
  expect((await history(dead)).texts).toContain('before the end');
  const late: Heard = { ids: [], texts: [] };
  await eventually(async () => {
    await poll(dead, late);
    const out = late.texts.filter((text) => text?.startsWith('/out '));
    expect(out).toEqual(Array.from({ length: round }, (_, i) => `/out ${i + 1}`));
  });
  await eventually(async () => {
    await resultOf(service.bot(living, 'sendMessage', { chat_id: owner.id, text: 'flush' }));
  });
  events.cut();
}, 60_000);

test('after a replica has taken over, its partitions continue under a raised incarnation', async () => {
  const bot = bots[1];
  const before = await resultOf(say(bot, 'to the first master'));
  const replica = await cluster.addReplica(1);
  const position = async (client: typeof replica.client) =>
    /(?:master_repl_offset|slave_repl_offset):(\d+)/.exec(await client.info('replication'))?.[1];
  await eventually(async () =>
    expect(await position(replica.client)).toBe(await position((cluster.nodes[1] as typeof replica).client)),
  );
  await cluster.nodes[1]?.kill();
  const since = performance.now();
  let after: Answer;
  do after = await say(bot, 'to the second');
  while (after.status === 503 && performance.now() - since < 20_000);
  expect(after.status).toBe(200);
  expect(after.body.result.message_id).toBeGreaterThanOrEqual(before.message_id + 10_000);
  await eventually(() =>
    expect(service.fronts.map((front) => front.log()).join('')).toMatch(/none is used twice/),
  );
  const { texts } = await history(bot);
  expect(texts).toContain('to the first master');
  const received: Heard = { ids: [], texts: [] };
  await eventually(async () => {
    await poll(bot, received);
    expect(once(received.texts, 'to the second')).toBe(1);
  });
  const waiting = service.bot(bot, 'getUpdates', { offset: offsets.get(bot.id), timeout: 20 }, 1);
  await sleep(300);
  await resultOf(say(bot, 'wake up'));
  const said = performance.now();
  await resultOf(waiting);
  expect(performance.now() - said).toBeLessThan(10_000);
}, 60_000);
