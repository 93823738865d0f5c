/** Tests that one owner's queues do not use all slots of a worker. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DrainContext } from '../../src/delivery/context.js';
import { Drain } from '../../src/delivery/drain.js';
import { createHeldBytes } from '../../src/delivery/held_bytes.js';
import { deliveryLimits as limits } from '../../src/delivery/limits.js';
import { createSlots } from '../../src/delivery/slots.js';
import { systemRandom } from '../../src/random.js';
import type { Lease, Step } from '../../src/store/webhooks/deliveries.js';
import type { Webhook } from '../../src/store/webhooks/webhooks.js';
import { VirtualTime } from '../support/virtual_time.js';
import { keepBooks, keepQueue, makeChats, settingsFor, startWorld, type World } from './world.js';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

test('while the receivers of a bot with routes do not answer, another owner’s bot gets its updates', async ({
  onTestFinished,
}) => {
  const { worker } = await world.worker({ drainsMax: 4 });
  const { store } = world.front;
  let answer = () => {};
  const answered = new Promise<number>((resolve) => {
    answer = () => resolve(200);
  });
  const [stuck, books] = await Promise.all([keepBooks(() => answered), keepBooks()]);
  onTestFinished(async () => {
    answer();
    await worker.stop();
    await Promise.all([stuck.close(), books.close()]);
  });
  const routed = await makeChats(world.front, 6);
  await store.webhooks.set(routed.bot.id, settingsFor(stuck), keepQueue);
  for (const [person, { id }] of routed.users.slice(1).entries())
    await store.webhooks.setRoute(routed.bot.id, {
      ...{ ...settingsFor(stuck), retry: null, name: `route${person}`, mask: null, percent: 100 },
      ...{ chats: [`${routed.bot.id}.${id}`], position: null, drop: false },
    });
  const single = await makeChats(world.front, 1);
  await store.webhooks.set(single.bot.id, settingsFor(books), keepQueue);
  await Promise.all(routed.users.map((_, person) => routed.say(person, 'stuck')));
  await expect.poll(() => stuck.open).toBeGreaterThanOrEqual(2);
  await single.say(0, 'ordinary');
  await books.tookIn(1);
  expect(stuck.mostOpen).toBe(2);
  answer();
  await stuck.tookIn(6);
});

const webhook: Webhook = {
  ...{ url: 'https://receiver.example/', secretToken: null, certificate: null, address: null },
  ...{ maxConnections: 10, version: 1, signing: ['whsec_AAAA'] },
};
const nothing = { again: [], fresh: [], now: 1_800_000_000_000, gone: null, dropped: 0, wait: null };

test.each([
  ['at most 100 updates while its owner has memory left', 0, limits.webhook_take_max],
  ['one update while its owner has used up their memory', 500, 1],
])('a drain without updates fetches %s', async (_, used, updates) => {
  const time = new VirtualTime();
  const steps: Step[] = [];
  const heldBytes = createHeldBytes(1_000);
  heldBytes.add(7, used);
  const context = {
    ...{ time, heldBytes, slots: createSlots(10), signer: { service: 'Service' } },
    ...{ random: systemRandom, mayStay: () => false, send: () => new Promise(() => undefined) },
    store: {
      auth: { botById: () => ({ id: 100_001, name: 'Bot', username: 'bot', names: {} }) },
      webhooks: { find: async () => webhook },
      deliveries: {
        listen: async () => () => undefined,
        advance: async (_: number, step: Step) => {
          steps.push(step);
          return { ...nothing, after: '0', more: false, hook: 1, left: true, wake: false };
        },
      },
    },
    onError: (error: unknown) => {
      throw error;
    },
  } as unknown as DrainContext;
  const lease = { ...nothing, more: true, after: '0', fence: '1', since: '0', hook: 1, safe: '0', probes: 0 };
  const at = { queue: 100_001, owner: 7 };
  const drain = new Drain(context, at, webhook, lease as unknown as Lease, time.monotonic(), false, false);
  await time.advance(100);
  await drain.done;
  expect(steps[0]?.updates).toBe(updates);
});
