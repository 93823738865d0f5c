/**
 * Tests durable calls while Redis repeatedly loses its latest changes or all its data under load. No acknowledged
 * message may be missing. To show that the test finds losses, a second test makes the same calls without durability and
 * expects missing messages.
 */
import { readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.js';
import { durableRedis, type Restartable } from './backends.js';
import { drained } from './compare.js';
import { amount, atMost, long, patienceMs, report } from './report.js';
import { createWorld, eventually } from './world.js';

let service: Service | undefined;
afterEach(async () => {
  await service?.stop();
  service = undefined;
});

const folderOf = ({ dir }: Restartable) => join(dir, 'redis', 'appendonlydir');

/**
 * Returns the path of the append-only file to which Redis adds changes. The path stays the same during the test,
 * because Redis rewrites the file only at 64 MB.
 */
function changesOf(redis: Restartable): string {
  const [name] = readdirSync(folderOf(redis)).filter((each) => each.endsWith('.incr.aof'));
  return join(folderOf(redis), name as string);
}

/**
 * Every fifth loss removes all data of Redis. The other losses remove about `tail_ms` of changes, as a failover to a
 * lagging replica does.
 */
const total_loss_every = 5;
const tail_ms = 300;

async function lose(redis: Restartable, loss: number, during: () => Promise<unknown>): Promise<void> {
  const file = changesOf(redis);
  const { size } = statSync(file);
  await during();
  await redis.kill();
  if (loss % total_loss_every === 0) rmSync(folderOf(redis), { recursive: true });
  else truncateSync(file, size);
  await redis.start();
}

interface LossOptions {
  readonly appendfsync?: 'always' | 'everysec';
  readonly unflushed?: boolean;
}

/**
 * Runs a load while Redis loses data. Returns how many messages were acknowledged, and how many of these messages are
 * missing. With `unflushed`, the flusher is paused before each loss, so that Redis loses messages that are not in
 * Postgres. Use `unflushed` only with calls that are not durable.
 */
async function missingAfter(
  losses: number,
  frontEnv: Readonly<Record<string, string>>,
  { appendfsync = 'always', unflushed = false }: LossOptions = {},
) {
  const redis = await durableRedis(undefined, appendfsync);
  service = await startService({ fronts: 2, redis, extraEnv: { PARTITIONS: '16' }, frontEnv });
  const world = await createWorld(service);
  const { ledger } = world;
  const ended = new AbortController();
  const refusals: Record<string, number> = {};
  const loading = world.load({
    count: Number.POSITIVE_INFINITY,
    front: (lane, tries) => (lane + tries) % 2,
    signal: ended.signal,
    onRefusal: (status, body) => {
      const { description = '' } = (body ?? {}) as { readonly description?: string };
      const kind = description.includes('may be lost') ? `${status} unconfirmed` : `${status}`;
      refusals[kind] = (refusals[kind] ?? 0) + 1;
    },
  });
  const more = (count: number) => {
    const before = ledger.acknowledged.length;
    const enough = () => ledger.acknowledged.length - before > count;
    return eventually(`${count} calls acknowledged`, enough, 60_000);
  };
  const { flush } = service;
  for (let loss = 1; loss <= losses; loss++) {
    await more(50);
    if (unflushed) flush.pause();
    await lose(redis, loss, () => (unflushed ? more(50) : sleep(tail_ms * (0.5 + Math.random()))));
    if (unflushed) flush.resume();
  }
  await more(50);
  ended.abort();
  await loading;
  await drained(service);
  const { fronts } = service;
  const ready = () => Promise.all(fronts.map(async ({ url }) => (await fetch(`${url}/readyz`)).status));
  await expect.poll(ready, { timeout: 40_000 }).toEqual([200, 200]);
  const history = await world.history();
  const kept = new Map([...history].map(([chat, seen]) => [chat, new Set(seen.map(({ text }) => text))]));
  const missing = ledger.acknowledged.filter(({ chat, text }) => !kept.get(chat)?.has(text));
  const ids = new Set(ledger.acknowledged.map(({ chat, messageId }) => `${chat} ${messageId}`));
  return {
    acknowledged: ledger.acknowledged.length,
    missing: missing.length,
    reused: ledger.acknowledged.length - ids.size,
    refusals,
  };
}

test.each(['always', 'everysec'] as const)(
  'R27: with appendfsync %s, no acknowledged durable message is missing after losses of Redis under load',
  async (appendfsync) => {
    const figures = await missingAfter(amount(20, 100), { DURABLE: '1' }, { appendfsync });
    const what = `Redis with appendfsync ${appendfsync} loses its latest changes or all data under durable load`;
    report('R27', what, figures, [atMost('acknowledged messages that are missing', figures.missing, 0)]);
    expect(figures).toMatchObject({ missing: 0, reused: 0 });
    expect(figures.acknowledged).toBeGreaterThan(1_000);
    expect(Object.keys(figures.refusals).filter((kind) => !kind.startsWith('503'))).toEqual([]);
  },
  long ? patienceMs : 600_000,
);

test(
  'messages that are not sent durably can be lost although they were acknowledged',
  async () => {
    expect((await missingAfter(4, {}, { unflushed: true })).missing).toBeGreaterThan(0);
  },
  patienceMs,
);
