/**
 * Tests calls that a receiver requests in its answer. Each call is executed only once, even if a worker dies at any
 * point.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createReceivers } from '../../src/delivery/outbound/receivers.js';
import type { DeliveryWorkerOptions } from '../../src/delivery/worker.js';
import type { Files } from '../../src/files/files.js';
import { methods } from '../../src/methods/methods.gen.js';
import { createAnswerCalls } from '../../src/server/bot_calls.js';
import { directChat } from '../../src/store/core/keys.js';
import type { Delivery } from '../../src/store/webhooks/deliveries.js';
import { makeCertificate } from '../support/certificates.js';
import { startReceiver } from '../support/receivers.js';
import type { TestNode } from '../support/store.js';
import { keepQueue, makeChats, startWorld, type World } from './world.js';

const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

type OnAnswer = NonNullable<DeliveryWorkerOptions['onAnswer']>;

function answersOn(node: TestNode): OnAnswer {
  const { run } = createAnswerCalls({
    methods,
    store: node.store,
    // These tests need no file store, because none of the calls uses files.
    files: {} as Files,
    receivers: createReceivers([]),
    onError: (error) => node.errors.push(error),
  });
  return (bot, delivery, { body }) => run(bot, delivery, body);
}

test('a call that a webhook answer requested does not run again if the update is delivered again', async ({
  onTestFinished,
}) => {
  let arrived = 0;
  const { bot, users, say } = await makeChats(world.front, 1);
  const [user] = users;
  const call = (text: string) => ({ method: 'sendMessage', chat_id: user?.id, text });
  const receiver = await startReceiver(certificate, (_, response) => {
    arrived++;
    response.end(JSON.stringify([call('a'), call('b')]));
  });
  onTestFinished(() => receiver.close());
  const messages = () =>
    world.front.connection.client.hget(world.cluster.keys.chat(directChat(bot.id, user?.id ?? 0)), 's');
  const { onAnswer, halted } = haltingAnswers(answersOn(world.front));
  const first = await world.worker({ onAnswer });
  const settings = {
    ...{ url: `https://127.0.0.1:${receiver.port}/`, secretToken: null, certificate: certificate.cert },
    ...{ maxConnections: 4, address: '127.0.0.1' },
  };
  await world.front.store.webhooks.set(bot.id, settings, keepQueue);
  await say(0, 'go');
  await halted;
  expect(await messages()).toBe('3');
  await first.kill();
  await world.worker({ onAnswer: answersOn(world.front) });
  const { queues, replays } = world.front.store;
  await expect.poll(async () => (await queues.info(bot.id)).pending, { timeout: 15_000 }).toBe(0);
  expect(arrived).toBe(2);
  expect(await messages()).toBe('3');
  // The receiver gives the same answer to another update, so the call runs again.
  await say(0, 'more');
  await expect.poll(messages).toBe('6');
  expect(await replays.countDead(bot.id)).toBe(0);
});

function haltingAnswers(run: OnAnswer): { readonly onAnswer: OnAnswer; readonly halted: Promise<void> } {
  let halt = () => {};
  const halted = new Promise<void>((resolve) => {
    halt = resolve;
  });
  return {
    halted,
    async onAnswer(...given) {
      await run(...given);
      halt();
      return new Promise(() => undefined);
    },
  };
}

test('a call requested in a webhook answer does not run after the bot is suspended', async () => {
  const { store, errors } = world.front;
  const { bot, users } = await makeChats(world.front, 1);
  const body = Buffer.from(JSON.stringify({ method: 'sendMessage', chat_id: users[0]?.id, text: 'a' }));
  const answered = (id: string) => ({ id, entry: { from: { id: 1, n: 'Ann' } } as Delivery['entry'] });
  const calls = createAnswerCalls({
    ...{ methods, store, files: {} as Files, receivers: createReceivers([]) },
    onError: (error) => errors.push(error),
  });
  await calls.run(bot.id, answered('1'), body);
  expect(calls.stats).toEqual({ done: 1, failed: 0, skipped: 0 });
  await store.oversight.suspendBot(bot.id, true);
  await calls.run(bot.id, answered('2'), body);
  expect(calls.stats).toEqual({ done: 1, failed: 1, skipped: 0 });
});
