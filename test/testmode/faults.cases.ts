import { expect, test } from 'vitest';
import type { TestServer, World } from '../../src/testing/client.js';
import { call, onTestServer, webhookOf } from './server.js';

let server: TestServer;
onTestServer((started) => {
  server = started;
});

const send = (world: World, text: string) =>
  call(server.url, world.bot.token, 'sendMessage', { chat_id: world.person().id, text });

test('a fault replaces the next answers of a method, and the replaced calls have no effect', async () => {
  const world = await server.world();
  await world.fault('SendMessage', { status: 429, retry_after: 7, times: 2 });
  await world.fault('sendMessage', { status: 503 });
  for (const text of ['a', 'b'])
    expect(await send(world, text)).toEqual({
      status: 429,
      body: {
        ok: false,
        error_code: 429,
        description: 'Too Many Requests: retry after 7',
        parameters: { retry_after: 7 },
      },
    });
  expect(await send(world, 'c')).toMatchObject({
    status: 503,
    body: { ok: false, error_code: 503, description: 'Service Unavailable' },
  });
  expect((await call(server.url, world.bot.token, 'getMe')).status).toBe(200);
  expect((await send(world, 'd')).body.result.message_id).toBe(1);
  const calls = await world.calls('sendMessage');
  expect(calls.map(({ status, fault }) => [status, fault])).toEqual([
    [429, 'not done'],
    [429, 'not done'],
    [503, 'not done'],
    [200, undefined],
  ]);
});

test('under a fault with "applied", the call takes effect and only the answer is replaced', async () => {
  const world = await server.world();
  await world.fault('sendMessage', { status: 502, applied: true });
  expect((await send(world, 'lost')).status).toBe(502);
  expect((await send(world, 'next')).body.result.message_id).toBe(2);
  expect((await world.calls('sendMessage'))[0]).toMatchObject({ status: 502, fault: 'answer lost' });
});

test('a fault delays a call, and a DELETE request removes all remaining faults', async () => {
  const world = await server.world();
  await world.fault('getMe', { delay_ms: 300, times: 5 });
  const began = performance.now();
  expect((await call(server.url, world.bot.token, 'getMe')).status).toBe(200);
  expect(performance.now() - began).toBeGreaterThan(290);
  await world.clearFaults();
  await world.fault('getMe', { delay_ms: 30_000 });
  await world.clearFaults();
  expect((await call(server.url, world.bot.token, 'getMe')).status).toBe(200);
});

test('a fault affects only the world in which the fault was set', async () => {
  const [one, two] = [await server.world(), await server.world()];
  await one.fault('sendMessage', { status: 500 });
  expect((await send(two, 'x')).status).toBe(200);
  expect((await send(one, 'x')).status).toBe(500);
});

test('a delivery arrives twice if a fault drops only its answer, and once if the fault replaces the delivery', async () => {
  const world = await server.world();
  const { texts } = await webhookOf(world);
  await world.fault('delivery', { status: 500 });
  await world.person().send('first');
  await expect.poll(() => texts).toEqual(['first']);
  await world.fault('delivery', { status: 504, applied: true });
  await world.person().send('second');
  await expect.poll(() => texts).toEqual(['first', 'second', 'second']);
  await expect.poll(() => world.deliveries('message')).toHaveLength(4);
  const deliveries = await world.deliveries();
  expect(deliveries.map(({ params, status, fault }) => [params.message.text, status, fault])).toEqual([
    ['first', 500, 'not done'],
    ['first', 200, undefined],
    ['second', 504, 'answer lost'],
    ['second', 200, undefined],
  ]);
  expect(JSON.stringify(deliveries)).not.toContain(world.bot.token);
});

test('a method call in a webhook answer is executed, and recorded as the answer of the delivery', async () => {
  const world = await server.world();
  const hook = await webhookOf(world);
  const answer = { method: 'sendMessage', chat_id: world.person().id, text: 'by answer' };
  hook.body = JSON.stringify(answer);
  await world.person().send('hello');
  await expect.poll(() => world.deliveries()).toMatchObject([{ status: 200, answer }]);
  expect(await world.calls('sendMessage')).toEqual([]);
  const headers = { Authorization: `Bearer ${world.person().token}` };
  const history = async () =>
    (await fetch(`${server.url}/api/chats/${world.bot.id}/messages`, { headers })).text();
  await expect.poll(history).toContain('by answer');
});

test('a delayed delivery holds back later updates of its chat, but not updates of other chats', async () => {
  const world = await server.world({ people: ['ann', 'ben'] });
  const { texts } = await webhookOf(world);
  await world.fault('delivery', { delay_ms: 60_000 });
  await world.person('ann').send('ann 1');
  // `advance` returns only after the fault has begun to delay the delivery.
  await server.advance(1);
  await world.person('ann').send('ann 2');
  await world.person('ben').send('ben 1');
  await expect.poll(() => texts).toEqual(['ben 1']);
  await server.advance(60_000);
  // Ignores repeated texts. A delivery is repeated if the clock moves before Petrel has read the answer of the
  // receiver.
  await expect.poll(() => [...new Set(texts)]).toEqual(['ben 1', 'ann 1', 'ann 2']);
});

test('invalid faults are refused', async () => {
  const world = await server.world();
  for (const [on, fault] of [
    ['fly', { status: 500 }],
    ['sendMessage', { status: 200 }],
    ['sendMessage', { delay_ms: 60_001 }],
    ['sendMessage', { status: 500, times: 0 }],
    ['sendMessage', { status: 500, times: 1_001 }],
    ['sendMessage', { status: 429, retry_after: 3_601 }],
  ] as const)
    await expect(world.fault(on, fault)).rejects.toMatchObject({ status: on === 'fly' ? 404 : 400 });
  for (let n = 0; n < 100; n++) await world.fault('getMe', { status: 500 });
  await expect(world.fault('getMe', { status: 500 })).rejects.toMatchObject({ status: 429 });
});
