/**
 * Tests a Redis that is out of memory. Calls that store more data are refused. Reads, revocations, deletions,
 * acknowledgements and deliveries work.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { makePartner, signatureOf } from '../api/leaks_world.js';
import { type Books, keepBooks } from '../delivery/world.js';
import { temporaryFolder } from '../support/servers.js';
import {
  itemsOf,
  resultOf,
  type Service,
  startService,
  type TestBot,
  type TestUser,
} from '../support/service.js';

const partitions = 8;
const keys = makeKeys(partitions);
const patient = { timeout: 30_000, interval: 100 };
const tooMany = { status: 429, headers: { 'retry-after': '1' } };

const folder = temporaryFolder();
const partner = makePartner('partner');
let service: Service;
let redis: Redis;
let owner: TestUser;
let ann: TestUser;

beforeAll(async () => {
  const extraEnv = { PARTITIONS: `${partitions}`, WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32' };
  const keyFile = join(folder, 'keys.json');
  const { id, pem } = partner;
  writeFileSync(
    keyFile,
    JSON.stringify({ public_keys: [{ key_identifier: id, key: pem, is_current: true }] }),
  );
  const frontEnv = { LEAK_REPORT_KEYS: keyFile, LEAK_REPORT_KEY_HEADER: 'X-Partner-Key' };
  service = await startService({ extraEnv, frontEnv });
  redis = new Redis(service.redis.url);
  [owner, ann] = await Promise.all([service.newUser('olga'), service.newUser('ann')]);
});
afterEach(async () => {
  await redis.config('SET', 'maxmemory', '0');
  // Waits, because a front needs up to a second to notice that memory is free again.
  await expect.poll(async () => (await startedBot('roomy').catch(() => null)) !== null, patient).toBe(true);
});
afterAll(async () => {
  redis?.disconnect();
  await service?.stop();
});

async function fill(percent: number): Promise<void> {
  const used = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
  await redis.config('SET', 'maxmemory', `${Math.round((used * 100) / percent)}`);
  if (percent >= 100) await expect(redis.set('any', 'thing')).rejects.toThrow(/OOM/);
}

const say = (bot: TestBot, text: string) =>
  service.app(ann, 'POST', `/api/chats/${bot.id}/messages`, { text });

async function startedBot(name: string): Promise<{ readonly bot: TestBot; readonly sent: number }> {
  const bot = await service.newBot(owner, name);
  await service.openChat(ann, bot);
  const { message_id: sent } = await resultOf(send(bot, 'hello'));
  return { bot, sent };
}

const send = (bot: TestBot, text: string) => service.bot(bot, 'sendMessage', { chat_id: ann.id, text });

async function newPost(): Promise<string> {
  const made = { type: 'channel', title: 'posts' };
  const { id } = await resultOf(service.app(owner, 'POST', '/api/chats', made));
  await resultOf(service.app(owner, 'POST', `/api/chats/${id}/messages`, { text: 'a post' }));
  const [post] = await itemsOf(service.app(owner, 'GET', `/api/chats/${id}/posts`));
  return post.external_id;
}

async function flushed(): Promise<void> {
  const lengths = () =>
    Promise.all(Array.from({ length: partitions }, (_, partition) => redis.xlen(keys.journal(partition))));
  await expect.poll(async () => (await lengths()).every((length) => length === 0), patient).toBe(true);
}

test('a token of a bot or person is revoked before the call returns, even while Redis is full', async () => {
  const { bot } = await startedBot('revoked');
  const guest = await service.newUser('guest');
  expect(await service.app(guest, 'GET', '/api/me')).toMatchObject({ status: 200 });
  await fill(200);
  const path = `/api/me/bots/${bot.id}/regenerate_token`;
  const { token } = await resultOf(service.app(owner, 'POST', path));
  expect(await service.bot(bot, 'getMe')).toMatchObject({ status: 401 });
  expect(await service.bot(token, 'getMe')).toMatchObject({ status: 200 });
  const operator = { token: service.adminToken };
  expect(await service.app(operator, 'DELETE', `/api/admin/users/${guest.id}/tokens`)).toMatchObject({
    status: 200,
  });
  expect(await service.app(guest, 'GET', '/api/me')).toMatchObject({ status: 401 });
});

test('while Redis is full, pending updates reach a healthy receiver', async () => {
  const { bot } = await startedBot('pushed');
  let healthy = false;
  const books: Books = await keepBooks(() => (healthy ? 200 : 503));
  try {
    const { url, certificate } = books;
    await resultOf(service.bot(bot, 'setWebhook', { url, certificate, max_connections: 4 }));
    const said = 20;
    for (let n = 0; n < said; n++) await resultOf(say(bot, `${n}`));
    await fill(200);
    healthy = true;
    // The count includes the update about the start of the bot.
    await books.tookIn(said + 1, 30_000);
    await expect
      .poll(async () => (await resultOf(service.bot(bot, 'getWebhookInfo'))).pending_update_count, patient)
      .toBe(0);
  } finally {
    await books.close();
  }
});

test('while Redis is full, polls, confirmations of updates, deletions and unpins succeed', async () => {
  const { bot, sent } = await startedBot('polled');
  const more = await resultOf(send(bot, 'one more'));
  await resultOf(service.bot(bot, 'pinChatMessage', { chat_id: ann.id, message_id: sent }));
  await resultOf(say(bot, 'heard'));
  await fill(200);
  const updates = await resultOf(service.bot(bot, 'getUpdates'));
  expect(updates.at(-1).message.text).toBe('heard');
  const offset = updates.at(-1).update_id + 1;
  expect(await resultOf(service.bot(bot, 'getUpdates', { offset }))).toEqual([]);
  expect(await resultOf(service.bot(bot, 'getWebhookInfo'))).toMatchObject({ pending_update_count: 0 });
  expect(await resultOf(service.bot(bot, 'unpinChatMessage', { chat_id: ann.id }))).toBe(true);
  const message_ids = [more.message_id];
  expect(await resultOf(service.bot(bot, 'deleteMessage', { chat_id: ann.id, message_id: sent }))).toBe(true);
  expect(await resultOf(service.bot(bot, 'deleteMessages', { chat_id: ann.id, message_ids }))).toBe(true);
  const items = await itemsOf(service.app(ann, 'GET', `/api/chats/${bot.id}/messages`));
  const ids = items.map(({ message_id }: { message_id: number }) => message_id);
  expect(ids).not.toContain(sent);
  expect(ids).not.toContain(more.message_id);
});

test('while Redis is full, a message stored only in Postgres can be deleted', async () => {
  const { bot, sent } = await startedBot('cold');
  await flushed();
  const chat = { id: bot.id, user: ann.id };
  await redis.del(keys.chat(chat), keys.message(chat, sent));
  await fill(200);
  expect(await resultOf(service.bot(bot, 'deleteMessage', { chat_id: ann.id, message_id: sent }))).toBe(true);
});

test('while Redis is full, calls that store more data are refused', async () => {
  const { bot } = await startedBot('read');
  await flushed();
  await fill(200);
  await expect.poll(() => send(bot, 'no'), patient).toMatchObject(tooMany);
  expect(await say(bot, 'no')).toMatchObject(tooMany);
  const chat = { id: bot.id, user: ann.id };
  const copies = [keys.bot(bot.id), keys.user(ann.id), keys.chat(chat)];
  const read = async () => {
    expect(await service.bot(bot, 'getMe')).toMatchObject({ status: 200 });
    expect(await service.app(ann, 'GET', '/api/me')).toMatchObject({ status: 200 });
    expect(await service.bot(bot, 'getChat', { chat_id: ann.id })).toMatchObject({ status: 200 });
    expect(await service.app(ann, 'GET', `/api/chats/${bot.id}/messages`)).toMatchObject({ status: 200 });
  };
  await read();
  // While Redis is full, a read does not cache control records, and caches a chat only for a short time. The test
  // repeats the reads, because each process needs some time to detect that Redis is full.
  const readCold = async () => {
    await redis.del(...copies);
    await read();
    return redis.exists(keys.bot(bot.id), keys.user(ann.id));
  };
  await expect.poll(readCold, patient).toBe(0);
  expect(await redis.pttl(keys.chat(chat))).toBeLessThanOrEqual(limits.redis_full_ttl_ms);
  await redis.config('SET', 'maxmemory', '0');
  await expect.poll(async () => (await send(bot, 'again')).status, patient).toBe(200);
});

test('while Redis uses over 85 % of its memory, uploads and calls that store more data are refused', async () => {
  const { bot, sent } = await startedBot('spared');
  await flushed();
  await fill(92);
  await expect.poll(() => send(bot, 'no'), patient).toMatchObject(tooMany);
  const before = await redis.dbsize();
  const form = new FormData();
  form.set('chat_id', `${ann.id}`);
  form.set('document', new Blob(['some bytes']), 'file.txt');
  const upload = await fetch(`${service.fronts[0].url}/bot${bot.token}/sendDocument`, {
    method: 'POST',
    body: form,
  });
  expect(upload.status).toBe(429);
  expect(await upload.json()).toMatchObject({ parameters: { retry_after: 1 } });
  const keyed = await fetch(`${service.fronts[0].url}/bot${bot.token}/sendMessage`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'one' },
    body: JSON.stringify({ chat_id: ann.id, text: 'no' }),
  });
  expect(keyed.status).toBe(429);
  expect(await redis.keys('*:idempotency*')).toEqual([]);
  expect(await redis.dbsize()).toBeLessThanOrEqual(before + 1);
  expect(await service.bot(bot, 'getMe')).toMatchObject({ status: 200 });
  expect(await resultOf(service.bot(bot, 'deleteMessage', { chat_id: ann.id, message_id: sent }))).toBe(true);
});

test('leaked tokens are blocked before the leak report is answered, even if Redis is full', async () => {
  const { bot } = await startedBot('leaked');
  const guest = await service.newUser('leaky');
  expect(await service.app(guest, 'GET', '/api/me')).toMatchObject({ status: 200 });
  await fill(200);
  const body = JSON.stringify(
    [bot.token, guest.token].map((token) => ({
      token,
      type: 'any',
      url: 'https://example.com/x',
      source: 'content',
    })),
  );
  const report = await fetch(`${service.fronts[0].url}/api/leaks/report`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-partner-key': partner.id,
      'github-public-key-signature': signatureOf(partner, body),
    },
    body,
  });
  expect(report.status).toBe(200);
  expect(((await report.json()) as Array<{ label: string }>).map(({ label }) => label)).toEqual([
    'true_positive',
    'true_positive',
  ]);
  expect(await service.bot(bot, 'getMe')).toMatchObject({ status: 401 });
  expect(await service.app(guest, 'GET', '/api/me')).toMatchObject({ status: 401 });
});

test('while Redis is full, an account can be removed with its bots, messages and reactions', async () => {
  const gone = await service.newUser('leaver');
  const own = await service.newBot(gone, 'orphan');
  const { bot } = await startedBot('stays');
  await service.openChat(gone, bot);
  await service.newGroup(owner, 'of all', [gone, ann]);
  const post = await newPost();
  await resultOf(service.app(gone, 'POST', `/api/posts/${post}/reactions`, { emoji: '🔥' }));
  await fill(200);
  expect(await service.app(gone, 'DELETE', '/api/me', { confirm: true })).toMatchObject({ status: 200 });
  expect(await service.app(gone, 'GET', '/api/me')).toMatchObject({ status: 401 });
  expect(await service.bot(own, 'getMe')).toMatchObject({ status: 401 });
  const reactions = async () => (await resultOf(service.app(ann, 'GET', `/api/posts/${post}`))).reactions;
  await expect.poll(reactions, patient).toEqual([]);
});

test('people remove reactions, block bots and leave chats while Redis is full', async () => {
  const { bot } = await startedBot('blocked');
  const chat = await service.newGroup(owner, 'to leave', [ann]);
  const post = await newPost();
  const path = `/api/posts/${post}/reactions`;
  for (const emoji of ['🔥', '❤', '👍']) await resultOf(service.app(ann, 'POST', path, { emoji }));
  await fill(200);
  await expect.poll(() => service.app(ann, 'POST', path, { emoji: '🎉' }), patient).toMatchObject(tooMany);
  const one = await service.app(ann, 'DELETE', `${path}?emoji=${encodeURIComponent('🔥')}`);
  expect(one).toMatchObject({ status: 200 });
  expect(one.body.my_reactions).not.toContain('🔥');
  expect(await service.app(ann, 'DELETE', `/api/posts/${post}/like`)).toMatchObject({ status: 200 });
  const all = await service.app(ann, 'DELETE', path);
  expect(all).toMatchObject({ status: 200, body: { reactions: [], my_reactions: [] } });
  const block = await service.app(ann, 'POST', `/api/bots/${bot.username}/block`);
  expect(block).toMatchObject({ status: 200 });
  expect(await service.app(ann, 'POST', `/api/chats/${chat}/leave`)).toMatchObject({ status: 200 });
});

test('while Redis is full, no process exits, and new processes can start', async () => {
  await fill(200);
  await service.deliver.stop();
  await service.deliver.start();
  const reports = async () =>
    Object.values(await redis.hgetall(keys.nodes())).map((text) => Number(text.split(' ')[0]));
  const before = Math.max(...(await reports()));
  // Waits until each process has sent a new status report while Redis is full.
  await expect
    .poll(async () => (await reports()).map((at) => at > before), patient)
    .toEqual([true, true, true]);
  await expect.poll(async () => Object.keys(await redis.hgetall(keys.rings())).length, patient).toBe(3);
});
