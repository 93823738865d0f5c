/**
 * A short form of `backup.long.test.ts`: backs up a running installation, and restores the backup into an empty
 * installation.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { petrel } from '../support/command.js';
import {
  type FreshDatabase,
  type FreshRedis,
  freshDatabase,
  freshRedis,
  temporaryFolder,
} from '../support/servers.js';
import { resultOf, type Service, startService } from '../support/service.js';
import { longTest } from '../support/tiers.js';
import { contentOf, elsewhere } from './installation.js';

const folder = temporaryFolder();
let service: Service;
let database: FreshDatabase;
let redis: FreshRedis;
beforeAll(async () => {
  [service, database, redis] = await Promise.all([
    startService({ combined: true, extraEnv: { PARTITIONS: '8' } }),
    freshDatabase(),
    freshRedis(),
  ]);
});
afterAll(async () => {
  await Promise.all([service?.stop(), database?.drop(), redis?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

longTest('a restore writes back every row', async () => {
  const owner = await service.newUser('olga');
  const bot = await service.newBot(owner, 'b');
  await service.openChat(owner, bot);
  await resultOf(service.bot(bot, 'sendMessage', { chat_id: owner.id, text: "kept ' \\ 🙂" }));
  await service.flush.stop();
  const saved = await petrel(service.env, 'backup', join(folder, 'one'));
  expect(saved, saved.log).toMatchObject({ code: 0 });
  const before = await contentOf(service.databaseUrl);
  // The copy of a Redis master in a cluster starts with a new replication id, which changes the table `partitions`.
  if (service.redis.cluster) before.delete('partitions');

  const env = elsewhere(service.env, redis, database.url);
  const restored = await petrel(env, 'restore', join(folder, 'one'));
  expect(restored, restored.log).toMatchObject({ code: 0 });
  const rows = await contentOf(database.url);
  for (const [table, expected] of before) expect(rows.get(table), table).toEqual(expected);
  // Expects the start of the bot and the message from the bot.
  expect(rows.get('messages')).toHaveLength(2);
  const again = await petrel(env, 'restore', join(folder, 'one'));
  expect(again.code).toBe(1);
  expect(again.log).toMatch(/is not empty/);
});
