import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { freshRedis } from '../support/servers.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';

const keys = makeKeys(1);
let service: Service;
let redis: Redis;
let owner: TestUser;
let bot: TestBot;
let group: number;

beforeAll(async () => {
  // Uses one Redis server and no cluster, because one test reads the server's append-only file.
  service = await startService({ combined: true, redis: await freshRedis(), extraEnv: { PARTITIONS: '1' } });
  redis = new Redis(service.redis.url);
  owner = await service.newUser('olga');
  bot = await service.newBot(owner, 'sizes');
  group = await service.newGroup(owner, 'Sizes', [bot]);
});
afterAll(async () => {
  redis?.disconnect();
  await service?.stop();
});

const call = (method: string, params: Readonly<Record<string, unknown>>) =>
  service.bot(bot, method, { chat_id: group, ...params });

const links = (length: number) =>
  Array.from({ length: limits.entities_max }, (_, offset) => ({
    ...{ type: 'text_link', offset, length: 1, url: `https://example.org/${'x'.repeat(length)}${offset}` },
  }));
const text = 'x'.repeat(limits.entities_max);
const buttons = (bytes: number) => ({
  inline_keyboard: Array.from({ length: limits.keyboard_buttons_max }, (_, n) => [
    { text: 'b'.repeat(bytes), callback_data: `${n}`.padEnd(limits.callback_data_bytes_max, '.') },
  ]),
});

const largest = {
  text: '😀'.repeat(limits.text_length_max),
  entities: links(60).map((link) => ({ ...link, offset: link.offset * 2, length: 2 })),
  reply_markup: buttons(60),
};

async function recordBytes(message: number): Promise<number> {
  return redis.strlen(keys.message({ id: group, user: 0 }, message));
}

test.each([
  ['links of 2,000 characters', { text, entities: links(2_000) }, 'ENTITIES_TOO_LONG'],
  ['a large keyboard', { text, reply_markup: buttons(400) }, 'reply markup is too long'],
])('a message with %s is refused, and nothing is written', async (_, params, why) => {
  const { message_id } = await resultOf(call('sendMessage', { text: 'before' }));
  const before = await redis.hget(keys.meta(0), 'ver');
  const refused = { status: 400, body: { ok: false, error_code: 400, description: `Bad Request: ${why}` } };
  expect(await call('sendMessage', params)).toMatchObject(refused);
  expect(await call('editMessageText', { message_id, ...params })).toMatchObject(refused);
  expect(await redis.hget(keys.meta(0), 'ver')).toBe(before);
  expect(await recordBytes(message_id + 1)).toBe(0);
});

test('the stored record of the largest message is below the size limit, even after an edit', async () => {
  const { message_id } = await resultOf(call('sendMessage', { text: 'x', reply_markup: buttons(60) }));
  const { text: sent } = await resultOf(call('editMessageText', { message_id, ...largest }));
  expect(sent).toBe(largest.text);
  const bytes = await recordBytes(message_id);
  expect(bytes).toBeGreaterThan(limits.record_bytes_max / 2);
  expect(bytes).toBeLessThanOrEqual(limits.record_bytes_max);
});

test('the total size of the copies that one call creates is limited', async () => {
  const { message_id } = await resultOf(call('sendMessage', largest));
  const bytes = await recordBytes(message_id);
  const fitting = Math.floor(limits.messages_batch_bytes_max / bytes);
  const copy = (count: number) =>
    call('copyMessages', { from_chat_id: group, message_ids: Array(count).fill(message_id) });
  const size = () => {
    const dir = join(service.redis.dir as string, 'appendonlydir');
    const files = readdirSync(dir).filter((name) => name.includes('.incr.'));
    return files.reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);
  };
  const before = size();
  expect(await copy(limits.messages_batch_max)).toMatchObject({
    status: 400,
    body: { description: 'Bad Request: too many message identifiers specified' },
  });
  expect(await resultOf(copy(fitting))).toHaveLength(fitting);
  // Redis stores the copies in three places: the state, the journal and the outbox of the group.
  expect(size() - before).toBeLessThan(4 * limits.messages_batch_bytes_max);
});
