/** Tests the metrics of processes that only deliver or only flush, and that have METRICS_PORT set. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { keepBooks } from '../delivery/world.js';
import { openMasters } from '../support/cluster.js';
import { createRole } from '../support/role_process.js';
import { resultOf } from '../support/service.js';
import { type MeteredRoles, onMeteredRoles } from './metrics_world.js';

let roles: MeteredRoles;
onMeteredRoles((started) => {
  roles = started;
});

const get: MeteredRoles['get'] = (...given) => roles.get(...given);
const figure: MeteredRoles['figure'] = (...given) => roles.figure(...given);

test('each process answers only the documented paths on its metrics port', async () => {
  for (const role of ['deliver', 'flush'] as const) {
    expect(await get(role, '/healthz')).toEqual({ status: 200, text: '{"ok":true,"result":true}' });
    expect(await get(role, '/readyz')).toEqual({ status: 200, text: '{"ok":true,"result":true}' });
    expect(await get(role, '/docs')).toMatchObject({ status: 404 });
    expect(await get(role, '/bot1:A/getMe')).toMatchObject({ status: 404 });
  }
  expect((await get('deliver', '/metrics')).text).toMatch(/^petrel_build_info\{version="/m);
});

test('a delivering process reports its deliveries, and a flushing process reports written entries', async () => {
  const books = await keepBooks(({ text }) => (text === 'no' ? 500 : 200));
  const owner = await roles.service.newUser('owner');
  const bot = await roles.service.newBot(owner, 'hooked');
  const { url, certificate } = books;
  await resultOf(roles.service.bot(bot, 'setWebhook', { url, certificate }));
  await roles.service.openChat(owner, bot);
  await expect.poll(() => figure('deliver', 'petrel_deliveries_total\\{outcome="delivered"\\}')).toBe(1);
  expect(await figure('deliver', 'petrel_update_age_seconds_bucket\\{le="60"\\}')).toBe(1);
  expect(await figure('deliver', 'petrel_delivery_retries_total')).toBe(0);
  await resultOf(roles.service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text: 'no' }));
  await expect.poll(() => figure('deliver', 'petrel_deliveries_total\\{outcome="5xx"\\}')).toBeGreaterThan(0);
  await expect.poll(() => figure('deliver', 'petrel_delivery_retries_total')).toBeGreaterThan(0);
  await expect.poll(() => figure('flush', 'petrel_flush_entries_total')).toBeGreaterThan(0);
  await books.close();
});

test('a scrape reads the current state of Redis', async () => {
  const masters = openMasters(roles.service.redis);
  const setMax = (bytes: number) =>
    Promise.all(masters.map((redis) => redis.config('SET', 'maxmemory', bytes)));
  try {
    for (const bytes of [900_000_000, 901_000_000]) {
      await setMax(bytes);
      await sleep(limits.backlog_age_ms_max + 1);
      expect(await figure('deliver', 'petrel_redis_memory_max_bytes\\{server="[^"]+"\\}')).toBe(bytes);
    }
  } finally {
    await setMax(0);
    for (const redis of masters) redis.disconnect();
  }
});

test('a process refuses to start if its metrics port is taken, and logs the reason', async () => {
  const late = createRole('flush', async () => ({
    ...roles.service.env,
    METRICS_PORT: `${roles.ports.deliver}`,
  }));
  await expect(late.start()).rejects.toThrow(/cannot listen on .* port \d+: the port is in use/);
});

test('a process that is shutting down reports that it is alive but not ready', async () => {
  let letGo = () => {};
  const held = new Promise<number>((resolve) => {
    letGo = () => resolve(200);
  });
  const books = await keepBooks(() => held);
  const owner = await roles.service.newUser('slow');
  const bot = await roles.service.newBot(owner, 'slow');
  const { url, certificate } = books;
  await resultOf(roles.service.bot(bot, 'setWebhook', { url, certificate }));
  await roles.service.openChat(owner, bot);
  await expect.poll(() => books.open).toBe(1);
  const stopping = roles.deliver.stop();
  await expect.poll(async () => (await get('deliver', '/readyz')).status).toBe(503);
  expect((await get('deliver', '/healthz')).status).toBe(200);
  letGo();
  expect(await stopping).toBe('exit code 0');
  await books.close();
});
