/**
 * Tests changes of a webhook while a worker serves its bot. Failures of the previous receiver do not affect the new
 * receiver, and no dropped update is sent.
 */

import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeCertificate } from '../support/certificates.js';
import { startReceiver } from '../support/receivers.js';
import { keepBooks, keepQueue, makeChats, settingsFor, startWorld, type World } from './world.js';

let world: World;
let errors: unknown[];
/** The number of hints that the worker has received, keyed by bot. */
const hints = new Map<number, number>();
const hintsOf = (bot: number) => hints.get(bot) ?? 0;
/** The bots whose pending updates were dropped, as reported by a step of the worker. */
const dropped = new Set<number>();
type Gate = (bot: number) => Promise<void>;
/**
 * Functions that let a test pause the worker. The worker awaits `step` before each step, and `settings` before it reads
 * the settings of a bot.
 */
let gates: Record<'step' | 'settings', Gate>;
const openGates = () => {
  gates = { step: async () => {}, settings: async () => {} };
};
openGates();
/** The secrets that were masked in the answer to the first delivery attempt, keyed by the text of the update. */
const masked = new Map<string, readonly string[]>();
beforeAll(async () => {
  world = await startWorld();
  const { node } = await world.worker({
    onOutcome(_, { entry }, __, ___, { secrets }) {
      const said = String(entry.message.record.content.text);
      if (!masked.has(said)) masked.set(said, secrets);
    },
  });
  ({ errors } = node);
  const { deliveries, webhooks } = node.store;
  const find = webhooks.find.bind(webhooks);
  const { advance, listen } = deliveries;
  Object.assign(webhooks, {
    find: async (bot: number) => gates.settings(bot).then(() => find(bot)),
  });
  Object.assign(deliveries, {
    async advance(...given: Parameters<typeof advance>) {
      await gates.step(given[0]);
      const advanced = await advance(...given);
      if (advanced?.dropped) dropped.add(given[0]);
      return advanced;
    },
    listen: (bot: number, hear: Parameters<typeof listen>[1]) =>
      listen(bot, (hint) => {
        hear(hint);
        hints.set(bot, hintsOf(bot) + 1);
      }),
  });
});
afterAll(() => world.close());

/**
 * A receiver that answers when the test tells it to. A text that begins with `later` gets 429 with a Retry-After of
 * an hour.
 */
async function sulking(onTestFinished: (end: () => Promise<void>) => void) {
  const shown = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
  const held: ServerResponse[] = [];
  let refused = 0;
  const receiver = await startReceiver(shown, (_, response, body) => {
    if (JSON.parse(body.toString()).message.text.startsWith('later')) {
      refused++;
      response.writeHead(429, { 'Retry-After': '3600' }).end();
    } else held.push(response);
  });
  onTestFinished(() => receiver.close());
  return {
    settings: { url: `https://127.0.0.1:${receiver.port}/secret-path`, certificate: shown.cert },
    held,
    refused: () => refused,
  };
}

test('failures of the previous receiver do not delay deliveries to the new receiver', async ({
  onTestFinished,
}) => {
  const { front } = world;
  const former = await sulking(onTestFinished);
  const books = await keepBooks();
  onTestFinished(() => books.close());
  const { bot, users, say } = await makeChats(front, 10);
  const { queues, webhooks } = front.store;
  await webhooks.set(bot.id, settingsFor(books, former.settings), keepQueue);
  await say(0, 'slow');
  await expect.poll(() => former.held.length).toBe(1);
  await Promise.all(users.slice(1).map((_, n) => say(n + 1, `later ${n}`)));
  await expect.poll(async () => (await queues.info(bot.id)).error?.message).toMatch(/429/);
  await expect.poll(former.refused).toBeGreaterThan(7);
  await webhooks.set(bot.id, settingsFor(books), keepQueue);
  // Requests to the previous receiver can stay open for a while after the webhook changes.
  await books.tookIn(9);
  former.held[0]?.writeHead(503).end();
  await books.tookIn(10);
  expect((await queues.info(bot.id)).error).toBeNull();
  expect(masked.get('slow')?.[0]).toBe(former.settings.url);
  expect(errors).toEqual([]);
});

test('drop_pending_updates also removes updates that a worker has already read', async ({
  onTestFinished,
}) => {
  const { front } = world;
  let answer = (_: number) => {};
  const answered = new Promise<number>((resolve) => {
    answer = resolve;
  });
  const books = await keepBooks(({ text }) => (text === 'open' ? answered : 200));
  onTestFinished(() => books.close());
  const { bot, say } = await makeChats(front, 3);
  const { queues, webhooks } = front.store;
  const settings = settingsFor(books, { maxConnections: 1 });
  await webhooks.set(bot.id, settings, keepQueue);
  await say(0, 'open');
  await expect.poll(() => books.open).toBe(1);
  for (const person of [0, 1, 2, 1]) await say(person, 'old');
  await webhooks.set(bot.id, settings, { drop: true, mask: null });
  await say(1, 'new');
  await say(0, 'new');
  expect((await queues.info(bot.id)).pending).toBe(2);
  // Until one of the worker’s steps reports the change, the worker may still send updates that it has already read.
  await expect.poll(() => dropped.has(bot.id)).toBe(true);
  answer(200);
  await books.tookIn(3);
  await expect.poll(async () => (await queues.info(bot.id)).pending).toBe(0);
  expect(books.taken.map(({ text }) => text)).toEqual(['open', 'new', 'new']);
});

const patience = { timeout: 30_000 };

/** Creates a gate at which the worker waits for one bot. The worker’s other bots do not wait. */
function makeGate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const gate = {
    waiting: 0,
    open,
    of: (bot: number) => async (other: number) => {
      if (other !== bot) return;
      gate.waiting++;
      await opened;
    },
  };
  return gate;
}

test('updates created after a change of the webhook are never sent with the previous settings', {
  timeout: 120_000,
}, async ({ onTestFinished }) => {
  const { front } = world;
  let answer = (_: number) => {};
  const answered = new Promise<number>((resolve) => {
    answer = resolve;
  });
  const former = await keepBooks(({ text }) => (text === 'open' ? answered : 200));
  const present = await keepBooks();
  const [step, settings] = [makeGate(), makeGate()];
  onTestFinished(async () => {
    openGates();
    for (const gate of [step, settings]) gate.open();
    answer(200);
    await Promise.all([former.close(), present.close()]);
  });
  const { bot, say } = await makeChats(front, 3);
  await front.store.webhooks.set(bot.id, settingsFor(former), keepQueue);
  await say(2, 'open');
  await expect.poll(() => former.open, patience).toBe(1);
  const unheard = hintsOf(bot.id);
  await expect
    .poll(async () => {
      await say(0, 'before');
      return hintsOf(bot.id);
    }, patience)
    .toBeGreaterThan(unheard);
  gates = { step: step.of(bot.id), settings: settings.of(bot.id) };
  // A step that has already begun may still read the change from Redis. The next step waits at the gate.
  await expect
    .poll(async () => {
      await say(0, 'before');
      return step.waiting;
    }, patience)
    .toBe(1);
  await front.store.webhooks.set(bot.id, settingsFor(present), keepQueue);
  await say(0, 'after');
  step.open();
  await expect.poll(() => settings.waiting, patience).toBe(1);
  const before = hintsOf(bot.id);
  // Each message causes a hint, and each hint makes the worker send the updates that it has already read.
  for (const person of [1, 0]) await say(person, 'after');
  await expect.poll(() => hintsOf(bot.id), patience).toBeGreaterThan(before + 1);
  settings.open();
  await expect.poll(() => present.taken.filter(({ text }) => text === 'after').length, patience).toBe(3);
  expect(former.arrivals.map(({ text }) => text)).not.toContain('after');
  expect(errors).toEqual([]);
});
