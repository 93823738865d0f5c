/**
 * Tests that a start after `petrel redis seal` and SHUTDOWN skips no ids and logs no warning. Every other start skips
 * ids and logs a warning.
 */
import { readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { petrel } from '../support/command.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { durableRedis } from './backends.js';

/** Matches the warning that Redis has lost data or may have lost data. */
const warning = /Redis (was restarted, replaced or moved|lost acknowledged changes)/;
let redis: Awaited<ReturnType<typeof durableRedis>>;
let service: Service;
let user: TestUser;
let bot: TestBot;

beforeEach(async () => {
  redis = await durableRedis();
  service = await startService({ redis, extraEnv: { PARTITIONS: '16' } });
  user = await service.newUser('olga');
  bot = await service.newBot(user, 'kept');
  await service.openChat(user, bot);
});
afterEach(() => service?.stop());

const roles = () => [service.fronts[0], service.deliver, service.flush];
const seal = () => petrel(service.env, 'redis', 'seal');
const send = async (text: string): Promise<number> =>
  (await resultOf(service.bot(bot, 'sendMessage', { chat_id: user.id, text }))).message_id;
async function stopRoles(): Promise<void> {
  for (const role of roles()) await role.stop();
}
async function startRoles(): Promise<void> {
  for (const role of roles()) await role.start();
}
const warned = () => roles().some((role) => warning.test(role.log()));
/** Checks that the start skipped the ids that Redis may have assigned, and logged a warning. */
async function isCautious(first: number): Promise<void> {
  expect(await send('later')).toBeGreaterThanOrEqual(first + 10_000);
  await expect.poll(warned).toBe(true);
}
function cutTail(bytes: number): void {
  const folder = join(redis.dir, 'redis', 'appendonlydir');
  const file = readdirSync(folder).find((name) => name.endsWith('.incr.aof')) as string;
  truncateSync(join(folder, file), statSync(join(folder, file)).size - bytes);
}

test('a start after SHUTDOWN skips ids, unless an operator sealed Redis before the shutdown', async () => {
  const refused = await seal();
  expect([refused.code, refused.log]).toEqual([1, expect.stringContaining('stop all roles first')]);
  const first = await send('one');
  await stopRoles();
  const sealed = await seal();
  expect([sealed.code, sealed.out]).toEqual([
    0,
    expect.stringContaining('sealed       16 partitions on 1 Redis servers'),
  ]);
  await redis.halt();
  await redis.start();
  await startRoles();
  expect([await send('two'), warned()]).toEqual([first + 1, false]);
  await stopRoles();
  await redis.halt();
  await redis.start();
  await startRoles();
  await isCautious(first);
}, 300_000);

test('a start skips ids if something was written after the seal', async () => {
  const first = await send('one');
  await stopRoles();
  expect((await seal()).code).toBe(0);
  await startRoles();
  expect(await send('two')).toBe(first + 1);
  await stopRoles();
  await redis.halt();
  await redis.start();
  await startRoles();
  await isCautious(first);
}, 300_000);

test('a start skips ids if Redis was killed after the seal and lost its latest writes', async () => {
  const first = await send('one');
  await stopRoles();
  expect((await seal()).code).toBe(0);
  await redis.kill();
  // Cuts off the end of the file: the seals of all partitions, and the last change before them.
  cutTail(6_000);
  await redis.start();
  await startRoles();
  await isCautious(first);
}, 300_000);
