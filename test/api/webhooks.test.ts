import { request } from 'undici';
import { afterAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { type Books, keepBooks } from '../delivery/world.js';
import { openAnywhere } from '../support/cluster.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let owner: TestUser;
let bot: TestBot;
let books: Books;
onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('olga');
  bot = await service.newBot(owner, 'hooked');
  await service.openChat(owner, bot);
  books = await keepBooks();
});
afterAll(async () => {
  await books.close();
});

const call = (method: string, params = {}, front = 0) => service.bot(bot, method, params, front);
const described = (text: string) => ({ status: 200, body: { ok: true, result: true, description: text } });
const refused = (text: string) => ({
  status: 400,
  body: { ok: false, error_code: 400, description: `Bad Request: ${text}` },
});
const info = (front = 1) => resultOf(call('getWebhookInfo', {}, front));
const say = (text: string, front = 0) =>
  resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }, front));

const empty = {
  url: '',
  has_custom_certificate: false,
  last_error_date: null,
  last_error_message: null,
  max_connections: 40,
};

test('a bot without a webhook has empty webhook info', async () => {
  expect(await info()).toMatchObject(empty);
  expect(await call('deleteWebhook')).toMatchObject(described('Webhook is already deleted'));
  expect(await call('setWebhook', { url: '' })).toMatchObject(described('Webhook is already deleted'));
  expect(await call('setWebhook')).toMatchObject(described('Webhook is already deleted'));
});

describe('a refused setWebhook does not change the webhook', () => {
  const url = () => books.url;
  test.each([
    ['no HTTPS', { url: 'http://example.com/' }, 'bad webhook: An HTTPS URL must be provided for webhook'],
    ['no URL', { url: 'https://' }, 'invalid webhook URL specified'],
    ['loopback', { url: 'https://[::1]/' }, 'bad webhook: IP address ::1 is reserved'],
    ['a private address', { url: 'https://10.0.0.1/' }, 'bad webhook: IP address 10.0.0.1 is reserved'],
    ['a long secret', { secret_token: 'x'.repeat(257) }, 'secret token is too long'],
    [
      'a secret with a forbidden character',
      { secret_token: 'a b' },
      'secret token contains unallowed characters',
    ],
    ['no certificate', { certificate: 'hello' }, 'bad webhook: certificate is not a valid PEM certificate'],
    ['no connections', { max_connections: 0 }, 'max_connections must be between 1 and 100'],
    ['too many connections', { max_connections: '101' }, 'max_connections must be between 1 and 100'],
    ['a fraction', { max_connections: 1.5 }, 'max_connections must be between 1 and 100'],
  ])('setWebhook refuses: %s', async (_, params, text) => {
    const certificate = books.certificate;
    await resultOf(
      call('setWebhook', { url: url(), certificate, max_connections: 7, secret_token: 'old_-1' }),
    );
    expect(await call('setWebhook', { url: url(), certificate, ...params })).toMatchObject(refused(text));
    expect(await info()).toMatchObject({ url: url(), max_connections: 7, has_custom_certificate: true });
  });
});

test('setWebhook and deleteWebhook report whether they changed anything', async () => {
  await call('deleteWebhook');
  const params = { url: books.url, certificate: books.certificate, allowed_updates: ['message'] };
  expect(await call('setWebhook', params)).toMatchObject(described('Webhook was set'));
  expect(await call('setWebhook', params, 1)).toMatchObject(described('Webhook is already set'));
  expect(await info()).toEqual({
    ...empty,
    url: books.url,
    has_custom_certificate: true,
    pending_update_count: expect.any(Number),
    ip_address: '127.0.0.1',
    allowed_updates: ['message'],
  });
  expect(await call('setWebhook', { ...params, max_connections: 3, allowed_updates: [] })).toMatchObject(
    described('Webhook was set'),
  );
  expect(await info()).not.toHaveProperty('allowed_updates');
  expect(await call('setWebhook', { url: '' }, 1)).toMatchObject(described('Webhook was deleted'));
  expect(await call('setWebhook', params)).toMatchObject(described('Webhook was set'));
  expect(await call('setWebhook', {}, 1)).toMatchObject(described('Webhook was deleted'));
  expect(await call('deleteWebhook')).toMatchObject(described('Webhook is already deleted'));
  expect(await info()).toMatchObject(empty);
});

test('setWebhook accepts a certificate as part "certificate" or as attach://', async () => {
  for (const [part, value] of [
    ['certificate', ''],
    ['a1b2', 'attach://a1b2'],
  ] as const) {
    const form = new FormData();
    form.set('url', books.url);
    form.set('secret_token', 'from-a-form');
    form.set('drop_pending_updates', 'true');
    form.set('allowed_updates', '["message"]');
    if (value !== '') form.set('certificate', value);
    form.set(part, new File([books.certificate], 'cert.pem'));
    const answer = await fetch(`${service.fronts[0].url}/bot${bot.token}/setWebhook`, {
      method: 'POST',
      body: form,
    });
    expect(await answer.json()).toMatchObject({ ok: true, result: true });
    expect(await info()).toMatchObject({ url: books.url, has_custom_certificate: true });
  }
  const before = books.taken.length;
  await say('by the form');
  await books.tookIn(before + 1);
  const [last] = books.taken.slice(-1);
  expect(last?.text).toBe('by the form');
  expect(last?.headers['x-service-bot-api-secret-token']).toBe('from-a-form');
  expect(last?.headers['x-telegram-bot-api-secret-token']).toBe('from-a-form');
  const encoded = await request(`${service.fronts[0].url}/bot${bot.token}/setWebhook`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({
      url: books.url,
      certificate: books.certificate,
      max_connections: '9',
    }).toString(),
  });
  expect(encoded.statusCode).toBe(200);
  expect(await info()).toMatchObject({ max_connections: 9 });
});

test('setWebhook refuses a certificate over 3 MiB', async () => {
  const form = new FormData();
  form.set('url', books.url);
  form.set('certificate', new File(['x'.repeat(3 * 1024 * 1024 + 1)], 'cert.pem'));
  const url = `${service.fronts[0].url}/bot${bot.token}/setWebhook`;
  const answer = await fetch(url, { method: 'POST', body: form });
  expect(await answer.json()).toMatchObject(refused('certificate size is too big').body);
});

test('setting a webhook ends a waiting poll, and later polls are refused', async () => {
  await call('deleteWebhook', { drop_pending_updates: true });
  const redis = openAnywhere(service.redis);
  const state = makeKeys(Number(service.env.PARTITIONS ?? 64)).queueState(bot.id);
  const named = () => redis.hget(state, 'poll');
  const before = await named();
  const waiting = call('getUpdates', { timeout: 20 }, 1);
  await expect.poll(named).not.toBe(before);
  redis.disconnect();
  await resultOf(call('setWebhook', { url: books.url, certificate: books.certificate }));
  expect(await waiting).toMatchObject({
    status: 409,
    body: { description: 'Conflict: terminated by setWebhook request' },
  });
  expect(await call('getUpdates', {}, 1)).toMatchObject({
    status: 409,
    body: {
      description:
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
    },
  });
  await resultOf(call('deleteWebhook', {}, 1));
  expect(await resultOf(call('getUpdates'))).toEqual([]);
});

test('the body of a delivery equals the update that a poll returns', async () => {
  await say('twice');
  const [polled] = await resultOf(call('getUpdates'));
  const before = books.taken.length;
  await resultOf(call('setWebhook', { url: books.url, certificate: books.certificate }));
  await books.tookIn(before + 1);
  expect(books.taken.at(-1)?.body.toString()).toBe(JSON.stringify(polled));
});

test('getWebhookInfo shows the last failure until the webhook is set again', async () => {
  const broken = await keepBooks(() => 502);
  await resultOf(call('setWebhook', { url: broken.url, certificate: broken.certificate }));
  await say('lost');
  await expect
    .poll(() => info())
    .toMatchObject({
      pending_update_count: 1,
      last_error_message: 'Wrong response from the webhook: 502 Bad Gateway',
    });
  const { last_error_date: date } = await info();
  expect(Math.abs(date - Date.now() / 1_000)).toBeLessThan(60);
  const before = books.taken.length;
  await resultOf(call('setWebhook', { url: books.url, certificate: books.certificate }));
  expect(await info()).toMatchObject({ last_error_date: null, last_error_message: null });
  await books.tookIn(before + 1);
  await broken.close();
});

/**
 * Updates that calls can create are far smaller than the 10 MB of interface §6. The test test/delivery/switch.test.ts
 * covers larger ones. An update contains at most two messages: the message, and the message that it replies to or pins.
 * The large parts of a message are its text, 100 entities with a link of 2,048 UTF-16 units each, and 64 KiB of
 * keyboard. A byte of the keyboard can take six bytes in JSON.
 */
test('the largest possible update is smaller than a quarter of the size limit of a delivery', async () => {
  const received = await keepBooks();
  const reader = await service.newBot(owner, 'reader');
  // Uses a channel, because a bot in a group gets no messages from other bots.
  const made = { type: 'channel', title: 'Long' };
  const { id: channel } = await resultOf(service.app(owner, 'POST', '/api/chats', made));
  const administrator = { status: 'administrator', rights: { can_post_messages: true } };
  for (const { id } of [bot, reader])
    await resultOf(service.app(owner, 'PUT', `/api/chats/${channel}/members/${id}`, administrator));
  const { url, certificate } = received;
  await resultOf(
    service.bot(reader, 'setWebhook', { url, certificate, drop_pending_updates: true, max_connections: 1 }),
  );
  const control = (length: number) => `x${'\u0001'.repeat(length - 2)}x`;
  const link = `https://example.org/${'本'.repeat(30)}`;
  const entities = Array.from({ length: limits.entities_max }, (_, offset) => ({
    ...{ type: 'text_link', offset, length: 1, url: `${link}${offset}` },
  }));
  const button = { text: control(limits.keyboard_bytes_max - 100), callback_data: 'd' };
  const long = {
    chat_id: channel,
    text: 'x'.repeat(limits.entities_max) + control(limits.text_length_max - limits.entities_max),
    ...{ entities, reply_markup: { inline_keyboard: [[button]] } },
  };
  const { message_id } = await resultOf(call('sendMessage', long));
  await resultOf(call('sendMessage', { ...long, reply_parameters: { message_id } }));
  await received.tookIn(2);
  const largest = Math.max(...received.taken.map(({ body }) => body.length));
  expect(largest).toBeGreaterThan(250_000);
  expect(largest).toBeLessThan(limits.webhook_body_bytes_max / 4);
  const { channel_post: message } = JSON.parse(String(received.taken.at(-1)?.body));
  for (const each of [message, message.reply_to_message])
    expect([each.text, each.entities.length]).toEqual([long.text, limits.entities_max]);
  await received.close();
});

test('the webhook URL and the secret token are not stored in plain text', async () => {
  const url = `${books.url}?key=not-for-others`;
  await resultOf(call('setWebhook', { url, certificate: books.certificate, secret_token: 'nobody-reads' }));
  const { Redis } = await import('ioredis');
  const pg = (await import('pg')).default;
  const sql = new pg.Client(service.databaseUrl);
  await sql.connect();
  const { rows } = await sql.query('select row_to_json(w)::text as row from webhooks w');
  await sql.end();
  const text = rows.map(({ row }) => row).join();
  const plain = [url, 'not-for-others', 'nobody-reads'];
  const hex = plain.map((each) => Buffer.from(each).toString('hex'));
  for (const each of [...plain, ...hex]) expect(text).not.toContain(each);
  for (const node of service.redis.cluster ?? [service.redis.url]) {
    const client = new Redis(node);
    for (const key of await client.keys('*')) {
      const dumped = await client.dumpBuffer(key).catch(() => null);
      for (const each of plain) expect(dumped?.includes(each) ?? false, key).toBe(false);
    }
    client.disconnect();
  }
  expect(service.deliver.log()).not.toContain('not-for-others');
});
