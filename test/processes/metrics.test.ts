/** Tests the metrics of processes that only deliver or flush, where METRICS_PORT is set. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { limits } from '../../src/limits.js';
import { keepBooks } from '../delivery/world.js';
import { openMasters } from '../support/cluster.js';
import { createRole, type RoleProcess } from '../support/role_process.js';
import { resultOf, type Service, startService } from '../support/service.js';

let service: Service;
let deliver: RoleProcess;
let flush: RoleProcess;
const ports = { deliver: 0, flush: 0 };

beforeAll(async () => {
  const extraEnv = { WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32' };
  service = await startService({ flushing: false, extraEnv });
  await service.deliver.stop();
  const start = async (role: 'deliver' | 'flush') => {
    ports[role] = await freePort();
    const made = createRole(role, async () => ({ ...service.env, METRICS_PORT: `${ports[role]}` }));
    await made.start();
    return made;
  };
  [deliver, flush] = await Promise.all([start('deliver'), start('flush')]);
});
afterAll(async () => {
  await Promise.all([deliver?.stop(), flush?.stop()]);
  await service?.stop();
});

async function get(role: 'deliver' | 'flush', path: string) {
  const { statusCode, body } = await request(`http://127.0.0.1:${ports[role]}${path}`);
  return { status: statusCode, text: await body.text() };
}
const figure = async (role: 'deliver' | 'flush', name: string) =>
  Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await get(role, '/metrics')).text)?.[1]);

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
  const owner = await service.newUser('owner');
  const bot = await service.newBot(owner, 'hooked');
  const { url, certificate } = books;
  await resultOf(service.bot(bot, 'setWebhook', { url, certificate }));
  await service.openChat(owner, bot);
  await expect.poll(() => figure('deliver', 'petrel_deliveries_total\\{outcome="delivered"\\}')).toBe(1);
  expect(await figure('deliver', 'petrel_update_age_seconds_bucket\\{le="60"\\}')).toBe(1);
  expect(await figure('deliver', 'petrel_delivery_retries_total')).toBe(0);
  await resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text: 'no' }));
  await expect.poll(() => figure('deliver', 'petrel_deliveries_total\\{outcome="5xx"\\}')).toBeGreaterThan(0);
  await expect.poll(() => figure('deliver', 'petrel_delivery_retries_total')).toBeGreaterThan(0);
  await expect.poll(() => figure('flush', 'petrel_flush_entries_total')).toBeGreaterThan(0);
  await books.close();
});

test('a scrape reads the current state of Redis', async () => {
  const masters = openMasters(service.redis);
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

// On a Redis Cluster each process also asks each master for its run id once a second.
test.skipIf(process.env.PETREL_TEST_REDIS === 'cluster')(
  'processes read the state of Redis only for scrapes',
  async () => {
    const [redis] = openMasters(service.redis) as [Redis];
    const infos = async () => {
      const stats = await redis.info('commandstats');
      return Number(/^cmdstat_info:calls=(\d+)/m.exec(stats)?.[1]);
    };
    const before = await infos();
    await sleep(20_000);
    // This test causes one read, and background checks of the memory cause a few. Three processes that read every 5 s
    // would cause twelve more.
    expect(await infos()).toBeLessThanOrEqual(before + 1 + 8);
    redis.disconnect();
  },
);

test('a process refuses to start if its metrics port is taken, and logs the reason', async () => {
  const late = createRole('flush', async () => ({ ...service.env, METRICS_PORT: `${ports.deliver}` }));
  await expect(late.start()).rejects.toThrow(/cannot listen on .* port \d+: the port is in use/);
});

test('a process that is shutting down reports that it is alive but not ready', async () => {
  let letGo = () => {};
  const held = new Promise<number>((resolve) => {
    letGo = () => resolve(200);
  });
  const books = await keepBooks(() => held);
  const owner = await service.newUser('slow');
  const bot = await service.newBot(owner, 'slow');
  const { url, certificate } = books;
  await resultOf(service.bot(bot, 'setWebhook', { url, certificate }));
  await service.openChat(owner, bot);
  await expect.poll(() => books.open).toBe(1);
  const stopping = deliver.stop();
  await expect.poll(async () => (await get('deliver', '/readyz')).status).toBe(503);
  expect((await get('deliver', '/healthz')).status).toBe(200);
  letGo();
  expect(await stopping).toBe('exit code 0');
  await books.close();
});
