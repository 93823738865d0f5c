/**
 * Tests notifications through the whole service, with a push service on loopback that decrypts the messages that it
 * receives.
 */
import { createECDH } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/limits.js';
import { type EventSource, openEvents } from '../clients/event_source.js';
import { makeCertificate } from '../support/certificates.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import type { Front } from '../support/role_process.js';
import { temporaryFolder } from '../support/servers.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { type Browser, claimsOf, makeBrowser, type Push } from './browser.js';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

let service: Service;
let receiver: Receiver;
let database: pg.Client;
let redis: Redis;
let origin: string;
let publicKey: string;
let olga: TestUser;
let news: TestBot;
let group: number;
const pushes: Push[] = [];
/** The browsers that the push service reports as unknown. */
const unknown = new Set<string>();

interface Person extends TestUser {
  readonly browser: Browser;
}

const app = (by: { readonly token: string }, verb: string, path: string, body?: unknown) =>
  resultOf(service.app(by, verb, path, body));
const send = (chat_id: number, text: string, more = {}) =>
  resultOf(service.bot(news, 'sendMessage', { chat_id, text, ...more }));
const sql = async (text: string, ...values: unknown[]) => (await database.query(text, values)).rows;
const until = <T>(check: () => Promise<T> | T) => vi.waitFor(check, { timeout: 20_000, interval: 20 });

async function person(name: string): Promise<Person> {
  const user = await service.newUser(name);
  const browser = makeBrowser(origin);
  await app(user, 'POST', '/api/me/push', browser.subscription);
  await service.openChat(user, news);
  return { ...user, browser };
}

const of = ({ browser }: Pick<Person, 'browser'>) => pushes.filter(({ device }) => device === browser.device);
// biome-ignore lint/suspicious/noExplicitAny: the same type as the result of Browser.read
const payloadsOf = (to: Person): any[] => of(to).map((push) => to.browser.read(push));
const bodies = (to: Person) => payloadsOf(to).map(({ body }) => body);

const noted = (to: TestUser, chat: number, message: number) =>
  until(async () => {
    const [row] = await sql(
      'select message_id from push_due where user_id = $1 and chat_id = $2',
      to.id,
      chat,
    );
    expect(Number(row?.message_id)).toBe(message);
  });

async function whileNobodyTells(work: () => Promise<void>): Promise<void> {
  service.deliver.pause();
  try {
    await work();
  } finally {
    service.deliver.resume();
  }
}

beforeAll(async () => {
  const certificate = makeCertificate({ addresses: ['127.0.0.1', '::1'] });
  const folder = temporaryFolder();
  mkdirSync(folder, { recursive: true });
  const authority = join(folder, 'authority.pem');
  writeFileSync(authority, certificate.cert);
  receiver = await startReceiver(certificate, (request, response, body) => {
    const device = (request.url ?? '').slice(1);
    pushes.push({ device, headers: request.headers, body });
    response.writeHead(unknown.has(device) ? 410 : 201).end();
  });
  origin = `https://127.0.0.1:${receiver.port}`;
  const key = createECDH('prime256v1');
  key.generateKeys();
  service = await startService({
    fronts: 2,
    extraEnv: {
      VAPID_PRIVATE_KEY: Buffer.from(key.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url'),
      VAPID_SUBJECT: 'mailto:operator@example.org',
      PUSH_DELAY_MS: '1',
      NODE_EXTRA_CA_CERTS: authority,
      WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32',
    },
  });
  publicKey = key.getPublicKey().toString('base64url');
  database = new pg.Client(service.databaseUrl);
  await database.connect();
  redis = new Redis(service.redis.url);
  olga = await service.newUser('olga');
  news = await service.newBot(olga, 'news');
  group = await service.newGroup(olga, 'Team', [news]);
  // Waits, because notifications are queued only after the flusher has seen that somebody is subscribed.
  const first = await person('first');
  await until(async () => {
    await send(first.id, 'Are you there?');
    expect(await sql('select 1 from push_due where user_id = $1', first.id)).not.toEqual([]);
  });
});

afterAll(async () => {
  await database?.end();
  redis?.disconnect();
  await service?.stop();
  await receiver?.close();
});

test('a browser can subscribe to notifications, unless its subscription has invalid keys or an internal address', async () => {
  const ann = await service.newUser('ann');
  expect(await app(ann, 'GET', '/api/me/push')).toEqual({ public_key: publicKey, subscriptions: 0 });
  const { subscription } = makeBrowser(origin);
  const refused = {
    status: 400,
    body: { ok: false, error_code: 400, description: 'Bad Request: invalid push subscription specified' },
  };
  const off = Buffer.alloc(65, 7);
  off[0] = 4;
  for (const wrong of [
    { endpoint: subscription.endpoint.replace('https:', 'http:') },
    { endpoint: 'https://10.0.0.1/push' },
    { endpoint: `https://[::1]:${receiver.port}/push` },
    { endpoint: `${origin}/${'x'.repeat(limits.push_endpoint_length_max)}` },
    { keys: { ...subscription.keys, auth: 'AAAA' } },
    { keys: { ...subscription.keys, p256dh: off.toString('base64url') } },
  ])
    expect(await service.app(ann, 'POST', '/api/me/push', { ...subscription, ...wrong })).toMatchObject(
      refused,
    );
  for (let n = 0; n <= limits.push_subscriptions_max; n++)
    await app(ann, 'POST', '/api/me/push', n === 0 ? subscription : makeBrowser(origin).subscription);
  const rows = await sql('select endpoint from push_subscriptions where user_id = $1', ann.id);
  expect(rows.length).toBe(limits.push_subscriptions_max);
  expect(rows.some(({ endpoint }) => endpoint === subscription.endpoint)).toBe(false);
});

test('a push subscription ends on request, when its token is revoked, or when another person signs in', async () => {
  const ann = await person('ann');
  const { endpoint } = ann.browser.subscription;
  const count = async (who: TestUser) => (await app(who, 'GET', '/api/me/push')).subscriptions;
  await app(ann, 'DELETE', '/api/me/push', { endpoint });
  expect(await count(ann)).toBe(0);

  const phone = await app(ann, 'POST', '/api/me/tokens', { name: 'phone' });
  await app(phone, 'POST', '/api/me/push', makeBrowser(origin).subscription);
  await app(ann, 'POST', '/api/me/push', ann.browser.subscription);
  await app(ann, 'DELETE', '/api/me/tokens', { name: 'phone' });
  expect(await count(ann)).toBe(1);

  const bob = await service.newUser('bob');
  await app(bob, 'POST', '/api/me/push', ann.browser.subscription);
  expect([await count(ann), await count(bob)]).toEqual([0, 1]);
});

test("a person without an open window gets one notification, which only the person's browser can decrypt", async () => {
  const ann = await person('ann');
  const { message_id, date } = await send(ann.id, 'Tea is <ready>', {
    entities: [{ type: 'spoiler', offset: 0, length: 3 }],
  });
  await until(() => expect(of(ann).length).toBe(1));
  const [push] = of(ann) as [Push];
  expect(payloadsOf(ann)).toEqual([
    { chat_id: news.id, message_id, date, title: 'news', body: '▒▒▒ is <ready>' },
  ]);
  const { aud, exp, sub } = claimsOf(push, publicKey);
  expect([aud, sub]).toEqual([origin, 'mailto:operator@example.org']);
  expect(exp).toBeGreaterThan(Date.now() / 1_000);
  expect(exp).toBeLessThan(Date.now() / 1_000 + 86_400);
  expect(push.headers).toMatchObject({ 'content-encoding': 'aes128gcm', ttl: '86400', urgency: 'high' });
  expect(push.headers.topic).toMatch(/^[\w-]{1,32}$/);
  // The push service can read neither the message nor its sender.
  expect(push.body.toString('latin1')).not.toMatch(/ready|news/);
  expect(() => makeBrowser(origin).read(push)).toThrow();
});

describe('Petrel suppresses notifications that a person does not need', () => {
  let eva: Person;
  let dan: Person;
  let cat: Person;
  let window: EventSource;
  let unseen: EventSource;

  test('a person gets no notification about a chat that is muted, already read, or open on any node', async () => {
    [cat, dan, eva] = await Promise.all([person('cat'), person('dan'), person('eva')]);
    const kim = await person('kim');
    for (const member of [dan, eva, kim])
      await app(olga, 'PUT', `/api/chats/${group}/members/${member.id}`, { status: 'member' });
    window = await openEvents((service.fronts[1] as Front).url, cat.token);
    unseen = await openEvents(service.fronts[0].url, eva.token, { path: '/api/stream?background=true' });
    await app(dan, 'PUT', `/api/chats/${news.id}/mute`);
    const [silent, muted, here, read] = [{ disable_notification: true }, 'muted', 'here', 'read'];
    await whileNobodyTells(async () => {
      await send(dan.id, muted);
      await send(eva.id, 'silent', silent);
      const { message_id: seen } = await send(cat.id, here);
      await noted(cat, news.id, seen);
      const { message_id } = await send(kim.id, read);
      await noted(kim, news.id, message_id);
      await app(kim, 'POST', `/api/chats/${news.id}/read`, { message_id });
    });
    // Waits until the queue is empty. Otherwise a notification about an earlier message could come before the next
    // notification.
    await until(async () => expect(await sql('select 1 from push_due where due_at is not null')).toEqual([]));
    await send(group, 'for all');
    const once = ['news: for all'];
    await until(() =>
      expect([bodies(dan).at(-1), bodies(eva).at(-1), bodies(kim).at(-1)]).toEqual([
        ...once,
        ...once,
        ...once,
      ]),
    );
    expect([bodies(dan), bodies(eva), bodies(kim), bodies(cat)]).toEqual([once, once, once, []]);
    expect(payloadsOf(dan)[0]).toMatchObject({ title: 'Team', chat_id: group });
    unseen.cut();
  });

  test('a person is notified again after the last window is closed or the chat is unmuted', async () => {
    window.cut();
    await until(async () => expect(await redis.keys('*:windows:*')).toEqual([]));
    await app(dan, 'DELETE', `/api/chats/${news.id}/mute`);
    await Promise.all([send(cat.id, 'gone'), send(dan.id, 'loud')]);
    await until(() => expect(bodies(cat)).toEqual(['gone']));
    await until(() => expect(bodies(dan)).toEqual(['news: for all', 'loud']));
  });

  test('the chat list shows until when a chat is muted', async () => {
    const until_s = Math.floor(Date.now() / 1_000) + 3_600;
    const muted = async (chat: number) => {
      const { muted, muted_until } = await app(dan, 'GET', `/api/chats/${chat}`);
      return [muted, muted_until];
    };
    expect(await muted(news.id)).toEqual([undefined, undefined]);
    await app(dan, 'PUT', `/api/chats/${news.id}/mute`, { until: until_s });
    expect(await muted(news.id)).toEqual([true, until_s]);
    await app(dan, 'PUT', `/api/chats/${group}/mute`);
    const { items }: { items: Array<{ id: number; muted?: true; muted_until?: number }> } = await app(
      dan,
      'GET',
      '/api/chats',
    );
    expect(items.map(({ id, muted, muted_until }) => [id, muted, muted_until]).sort()).toEqual(
      [
        [group, true, undefined],
        [news.id, true, until_s],
      ].sort(),
    );
    await app(dan, 'PUT', `/api/chats/${news.id}/mute`, { until: until_s - 7_200 });
    expect(await muted(news.id)).toEqual([undefined, undefined]);
    expect((await service.app(cat, 'PUT', `/api/chats/${group}/mute`)).status).toBe(403);
    expect((await service.app(cat, 'PUT', '/api/chats/4711/mute')).status).toBe(404);
  });

  test('the sender of a message gets no notification about the message', async () => {
    const [max, ned] = await Promise.all([person('max'), person('ned')]);
    const own = await service.newGroup(olga, 'Own', [max, ned]);
    const { message_id } = await app(max, 'POST', `/api/chats/${own}/messages`, { text: 'mine' });
    await noted(ned, own, message_id);
    await until(() => expect(bodies(ned)).toEqual([`${max.first_name}: mine`]));
    expect(await sql('select 1 from push_due where user_id = $1 and chat_id = $2', max.id, own)).toEqual([]);
    expect(bodies(max)).toEqual([]);
  });
});

test('the title of a notification is the name of the person who sent the message', async () => {
  const [ida, jon] = await Promise.all([person('ida'), person('jon')]);
  const chat = await app(ida, 'POST', `/api/people/${jon.username}/chat`, {});
  const { message_id, date } = await app(ida, 'POST', `/api/chats/${chat.id}/messages`, { text: 'hello' });
  const expected = { chat_id: chat.id, message_id, date, title: ida.first_name, body: 'hello' };
  await until(() => expect(payloadsOf(jon)).toEqual([expected]));
  expect(payloadsOf(ida)).toEqual([]);
});

test('several messages sent together cause one notification, and an edit causes none', async () => {
  const ann = await person('ann');
  const first = await send(ann.id, 'one', { disable_notification: true });
  const second = await send(ann.id, 'two', { disable_notification: true });
  let last = 0;
  await whileNobodyTells(async () => {
    const copied: Array<{ message_id: number }> = await resultOf(
      service.bot(news, 'copyMessages', {
        ...{ chat_id: ann.id, from_chat_id: ann.id },
        message_ids: [first.message_id, second.message_id],
      }),
    );
    last = copied[1]?.message_id as number;
    await noted(ann, news.id, last);
    await resultOf(service.bot(news, 'editMessageText', { chat_id: ann.id, message_id: last, text: 'two!' }));
  });
  await until(() => expect(bodies(ann)).toEqual(['two!']));
  await resultOf(
    service.bot(news, 'editMessageText', { chat_id: ann.id, message_id: first.message_id, text: 'x' }),
  );
  const due = await sql('select due_at from push_due where user_id = $1', ann.id);
  expect(due).toEqual([{ due_at: null }]);
});

test('a long text is shortened so that the encrypted notification stays below 4,096 bytes', async () => {
  const ann = await person('ann');
  await send(ann.id, '🐦'.repeat(4_000));
  await until(() => expect(of(ann).length).toBe(1));
  const [body] = bodies(ann) as [string];
  expect([...body].length).toBe(limits.push_text_length_max);
  expect(body.endsWith('🐦…')).toBe(true);
  expect(of(ann)[0]?.body.length).toBeLessThan(4_096);
});

test('a push subscription is removed when the push service reports it as unknown', async () => {
  const ann = await person('ann');
  unknown.add(ann.browser.device);
  await send(ann.id, 'hello');
  await until(async () => expect((await app(ann, 'GET', '/api/me/push')).subscriptions).toBe(0));
  expect(of(ann).length).toBe(1);
});

test('nothing is sent to a push subscription whose host has an internal address', async () => {
  const ann = await person('ann');
  const inside = `https://[::1]:${receiver.port}/${ann.browser.device}`;
  await sql('update push_subscriptions set endpoint = $2 where user_id = $1', ann.id, inside);
  await send(ann.id, 'hello');
  await until(async () =>
    expect(await sql('select failures from push_subscriptions where user_id = $1', ann.id)).toEqual([
      { failures: 1 },
    ]),
  );
  expect(of(ann)).toEqual([]);
});

test("an export contains a person's push subscriptions and mutes", async () => {
  const ann = await person('ann');
  await app(ann, 'PUT', `/api/chats/${news.id}/mute`);
  const answer = await fetch(`${service.fronts[0].url}/api/me/export`, {
    headers: { Authorization: `Bearer ${ann.token}` },
  });
  const lines = await answer.text();
  expect(lines).toContain(ann.browser.subscription.endpoint);
  expect(lines).toContain('"muted":true');
  await app(ann, 'DELETE', '/api/me', { confirm: true });
  for (const table of ['push_subscriptions', 'chat_mutes', 'push_due'])
    expect(await sql(`select 1 from ${table} where user_id = $1`, ann.id)).toEqual([]);
});
