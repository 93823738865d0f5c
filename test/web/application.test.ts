import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { demoKeyPath } from '../../src/config/config.js';
import { chosenEncoding } from '../../src/web/pages.js';
import { openEvents } from '../clients/event_source.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';

let service: Service;
let alice: TestUser;
let bob: TestUser;
let bot: TestBot;
const folder = mkdtempSync(join(tmpdir(), 'petrel-demo-'));
const demo = join(folder, 'demo.json');

beforeAll(async () => {
  service = await startService({ combined: true, fronts: 2, frontEnv: { DEMO_FILE: demo } });
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  bot = await service.newBot(alice, 'helper');
});
afterAll(async () => {
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function load(
  path: string,
  headers: Record<string, string> = {},
  method: 'GET' | 'HEAD' | 'POST' = 'GET',
  front = 0,
) {
  const answer = await request(`${service.fronts[front]?.url}${path}`, { method, headers });
  return {
    status: answer.statusCode,
    headers: answer.headers as Record<string, string | undefined>,
    bytes: Buffer.from(await answer.body.arrayBuffer()),
  };
}

const me = (user: TestUser, verb: string, path: string, body?: unknown) =>
  resultOf(service.app(user, verb, path, body));

describe('a front serves the pages of the application', () => {
  test.each(['/app', '/ops'])(
    'pages are served under a strict policy, and %s loads everything from this host',
    async (at) => {
      const page = await load(at);
      expect(page.status).toBe(200);
      expect(page.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-cache',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      });
      const policy = page.headers['content-security-policy'] ?? '';
      for (const part of [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
      ])
        expect(policy.split('; ')).toContain(part);
      expect(policy).not.toMatch(/unsafe|\*/);
      const loaded = [...String(page.bytes).matchAll(/(?:src|href)="([^"]+)"/g)].map(
        ([, path]) => path as string,
      );
      expect(loaded.length).toBeGreaterThan(2);
      for (const path of loaded) {
        expect(path.startsWith(`${at}/`), path).toBe(true);
        expect((await load(path)).status, path).toBe(200);
      }
    },
  );

  test.each([
    ['/', '/app'],
    ['/docs/', '/docs'],
  ])('a browser that requests %s is redirected to %s', async (from, to) => {
    const headers = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    const answer = await load(from, headers);
    expect([answer.status, answer.headers.location]).toEqual([307, to]);
    expect((await load(to, headers)).status).toBe(200);
    expect((await load(from, headers, 'HEAD')).status).toBe(307);
  });

  test('a client that does not accept HTML gets 404 for `/`', async () => {
    for (const headers of [{}, { accept: 'application/json' }]) {
      const answer = await load('/', headers);
      expect([answer.status, JSON.parse(String(answer.bytes))]).toMatchObject([404, { ok: false }]);
    }
  });

  test("the operators' page loads nothing from other hosts", async () => {
    const parts = ((await load('/ops/')).headers['content-security-policy'] ?? '').split('; ');
    for (const part of ["img-src 'self'", "connect-src 'self'", "trusted-types 'none'"])
      expect(parts).toContain(part);
    expect(parts.join()).not.toMatch(/https:|blob:|data:/);
    expect((await load('/ops', {}, 'POST')).status).toBe(405);
    expect((await load('/ops/page.html')).status).toBe(404);
  });

  test('the first load of the application takes less than 145 KB', async () => {
    const page = String((await load('/app/')).bytes);
    const scripts = [...page.matchAll(/"(\/app\/assets\/[^"]+)"/g)].map(([, path]) => path as string);
    let bytes = 0;
    const seen = new Set<string>();
    const follow = async (path: string): Promise<void> => {
      if (seen.has(path)) return;
      seen.add(path);
      const plain = await load(path);
      const small = await load(path, { 'accept-encoding': 'gzip' });
      expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable');
      if (small.headers['content-encoding']) expect(gunzipSync(small.bytes)).toEqual(plain.bytes);
      bytes += small.bytes.length;
      // Follows only static imports, because a chunk that is loaded later is imported by a call of import().
      for (const [, name] of String(plain.bytes).matchAll(/(?:from|import)"\.\/([\w-]+\.js)"/g))
        await follow(`/app/assets/${name}`);
    };
    for (const path of scripts) await follow(path);
    expect(seen.size).toBeGreaterThan(1);
    expect(bytes).toBeLessThan(145_000);
  });

  test('each encoding of a file has a different ETag', async () => {
    const [plain, brotli] = [await load('/app'), await load('/app', { 'accept-encoding': 'gzip, br' })];
    expect(brotli.headers['content-encoding']).toBe('br');
    expect(brotli.headers.vary).toBe('Accept-Encoding');
    expect(brotliDecompressSync(brotli.bytes)).toEqual(plain.bytes);
    expect(brotli.headers.etag).not.toBe(plain.headers.etag);
    const again = { 'accept-encoding': 'br', 'if-none-match': brotli.headers.etag as string };
    expect(await load('/app', again)).toMatchObject({ status: 304, bytes: Buffer.alloc(0) });
    expect((await load('/app', { 'if-none-match': brotli.headers.etag as string })).status).toBe(200);
    expect((await load('/app', {}, 'HEAD')).headers['content-length']).toBe(String(plain.bytes.length));
  });

  test.each([
    ['gzip, deflate, br', 'br'],
    ['gzip;q=1.0, br;q=0', 'gzip'],
    ['br;q=0.0, gzip;q=0', undefined],
    ['', undefined],
    ['identity', undefined],
  ])('a request with Accept-Encoding "%s" gets %s', (accepted, wanted) => {
    expect(chosenEncoding(accepted, ['br', 'gzip'])).toBe(wanted);
  });

  test('unknown paths of the application give a 404', async () => {
    expect((await load('/app/nothing.js')).status).toBe(404);
    expect((await load('/app/../dist/main.js')).status).toBe(404);
    expect((await load('/app', {}, 'POST')).status).toBe(405);
  });
});

describe('one-click sign-in', () => {
  test('one-click sign-in works only on this machine, with its host name and the right key', async () => {
    const key = { authorization: 'Bearer one-time-key' };
    const ask = (headers: Record<string, string>) => load('/app/demo', headers, 'POST');
    expect((await ask(key)).status).toBe(404);
    writeFileSync(demo, JSON.stringify({ users: { alice: { username: 'alice', token: 'secret', id: 1 } } }));
    expect((await ask(key)).status).toBe(404);
    writeFileSync(demoKeyPath(demo), 'one-time-key');
    // Each of these requests fails, but does not use up the key.
    for (const more of [{ host: 'evil.example' }, { 'x-forwarded-for': '192.0.2.1' }])
      expect((await ask({ ...key, ...more })).status).toBe(404);
    for (const wrong of ['', 'Bearer ', 'Bearer one-time-kex', 'Bearer one-time-key2'])
      expect((await ask(wrong === '' ? {} : { authorization: wrong })).status).toBe(404);
    expect((await load('/app/demo', key)).status).toBe(405);
    const { status, bytes, headers } = await ask(key);
    expect([status, headers['cache-control'], JSON.parse(String(bytes)).result.people]).toEqual([
      200,
      'no-store',
      [{ username: 'alice', token: 'secret' }],
    ]);
    expect((await ask(key)).status).toBe(404);
  });

  test('a one-time key works once, even if several fronts get it at the same time', async () => {
    writeFileSync(demo, JSON.stringify({ users: {} }));
    for (let round = 0; round < 5; round++) {
      writeFileSync(demoKeyPath(demo), `key-${round}`);
      const headers = { authorization: `Bearer key-${round}` };
      const asked = Array.from({ length: 8 }, (_, i) => load('/app/demo', headers, 'POST', i % 2));
      const statuses = (await Promise.all(asked)).map(({ status }) => status);
      expect(statuses.sort()).toEqual([200, ...Array(7).fill(404)]);
    }
  });
});

describe('a person has a read position in each chat', () => {
  test('the unread count of a chat counts only messages of others', async () => {
    const group = await service.newGroup(alice, 'Team', [bob]);
    const write = (user: TestUser, text: string) =>
      me(user, 'POST', `/api/chats/${group}/messages`, { text });
    const unread = async (user: TestUser) =>
      (await me(user, 'GET', '/api/chats')).items.find(({ id }: { id: number }) => id === group).unread_count;
    const first = await write(alice, 'one');
    await write(alice, 'two');
    // Two service messages count as unread too: one about the new group, and one about Bob's addition.
    expect([await unread(alice), await unread(bob)]).toEqual([undefined, 4]);
    await me(bob, 'POST', `/api/chats/${group}/read`, { message_id: first.message_id });
    expect(await unread(bob)).toBe(1);
    const third = await write(alice, 'three');
    await me(bob, 'POST', `/api/chats/${group}/read`, { message_id: third.message_id });
    await me(bob, 'POST', `/api/chats/${group}/read`, { message_id: first.message_id });
    expect(await unread(bob)).toBeUndefined();
    // A position beyond the newest message becomes the position of the newest message, so that later messages count as
    // unread.
    await me(bob, 'POST', `/api/chats/${group}/read`, { message_id: third.message_id + 1_000 });
    await write(alice, 'four');
    expect((await me(bob, 'GET', `/api/chats/${group}`)).unread_count).toBe(1);
    await write(bob, 'mine');
    expect(await unread(bob)).toBeUndefined();
    const stranger = await service.newUser('carol');
    const refused = await service.app(stranger, 'POST', `/api/chats/${group}/read`, { message_id: 1 });
    expect(refused.status).toBe(403);
  });
});

test('a look-up of a username finds the bot, person or public chat with this username', async () => {
  const about = { type: 'channel', title: 'News', username: 'app_news' };
  const { id } = await me(alice, 'POST', '/api/chats', about);
  const find = (name: string) => service.app(bob, 'GET', `/api/names/${name}`);
  expect(await resultOf(find('App_News'))).toEqual({ type: 'channel', id, username: 'app_news' });
  expect(await resultOf(find(`@${bot.username}`))).toEqual({
    type: 'bot',
    id: bot.id,
    username: bot.username,
  });
  expect(await resultOf(find(alice.username))).toMatchObject({ type: 'user', id: alice.id });
  expect((await find('nobody_at_all')).body.ok).toBe(false);
});

test('one event stream reports the reactions on many posts', async () => {
  const { id } = await me(alice, 'POST', '/api/chats', { type: 'channel', title: 'Wall' });
  for (const text of ['a', 'b']) await me(alice, 'POST', `/api/chats/${id}/messages`, { text });
  const { items: posts }: { items: Array<{ id: number }> } = await me(alice, 'GET', `/api/chats/${id}/posts`);
  const names = posts.map((post) => post.id).join(',');
  const url = service.fronts[1]?.url ?? '';
  const events = await openEvents(url, alice.token, { path: `/api/stream/posts?posts=${names}` });
  await events.received(({ data }) => data.post_id === posts[1]?.id);
  await resultOf(service.app(alice, 'POST', `/api/chats/${id}/messages`, { text: 'c' }));
  await service.app(alice, 'POST', `/api/posts/${posts[0]?.id}/reactions`, { emoji: '🔥' });
  await service.app(alice, 'POST', `/api/posts/${posts[1]?.id}/like`);
  const has = (post: number | undefined, emoji: string) =>
    events.received(
      ({ event, data }) =>
        event === 'post_reactions' && data.post_id === post && data.my_reactions.includes(emoji),
    );
  await has(posts[0]?.id, '🔥');
  await has(posts[1]?.id, '❤');
  expect(new Set(events.events.map(({ event }) => event))).toEqual(new Set(['post_reactions']));
  events.cut();
  await expect
    .poll(
      async () => (await me(alice, 'GET', `/api/posts/${posts[0]?.id}/reactions`)).items[0]?.user?.first_name,
    )
    .toBe('alice');
  const refused = async (list: string) =>
    (await service.app(bob, 'GET', `/api/stream/posts?posts=${list}`)).body.description;
  expect(await refused('')).toMatch(/must be ids of 1 to 40 posts/);
  expect(await refused('1,2')).toBe('Not Found: post not found');
  expect(await refused(Array.from({ length: 41 }, (_, i) => i + 1).join(','))).toMatch(/must be ids of/);
});

test('a channel shows whether the caller may post in it', async () => {
  const { id } = await me(alice, 'POST', '/api/chats', { type: 'channel', title: 'Paper' });
  await me(bob, 'POST', `/api/chats/${id}/join`);
  expect((await me(alice, 'GET', `/api/chats/${id}`)).can_post).toBe(true);
  expect((await me(bob, 'GET', `/api/chats/${id}`)).can_post).toBeUndefined();
});

test('the owner of a bot sees the state of its webhook', async () => {
  const state = await me(alice, 'GET', `/api/me/bots/${bot.id}/webhook`);
  expect(state).toEqual(await resultOf(service.bot(bot, 'getWebhookInfo')));
  expect((await service.app(bob, 'GET', `/api/me/bots/${bot.id}/webhook`)).status).toBe(403);
});
