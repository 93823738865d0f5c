import { randomUUID } from 'node:crypto';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { makeKeys } from '../../src/store/core/keys.js';
import { openAnywhere } from '../support/cluster.js';
import { createFront, type Front } from '../support/role_process.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { longTest } from '../support/tiers.js';

const base = 'https://petrel.example';
let service: Service;
let [alice, bob] = [] as unknown as [TestUser, TestUser];
let bot: TestBot;

beforeAll(async () => {
  service = await startService({ combined: true, frontEnv: { BASE_URL: `${base}/` } });
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  bot = await service.newBot(alice, 'herald');
});
afterAll(() => service?.stop());

/** Starts a front with these settings, and stops the front at the end of the test. */
async function startFront(own: Readonly<Record<string, string>>): Promise<Front> {
  const front = await createFront({ ...service.env, ...own }, {});
  onTestFinished(async () => void (await front.stop()));
  await front.start();
  return front;
}

async function load(
  path: string,
  headers: Record<string, string> = {},
  { method = 'GET', url = service.fronts[0].url }: { method?: 'GET' | 'HEAD' | 'POST'; url?: string } = {},
) {
  const body = method === 'POST' ? 'x=1' : null;
  const answer = await request(`${url}${path}`, { method, headers, body });
  return {
    status: answer.statusCode,
    headers: answer.headers as Record<string, string | undefined>,
    text: await answer.body.text(),
  };
}

async function newChannel(more: object = {}): Promise<number> {
  const params = { type: 'channel', title: 'News', ...more };
  const { id } = await resultOf(service.app(alice, 'POST', '/api/chats', params));
  const rights = { can_post_messages: true };
  const member = { status: 'administrator', rights };
  await resultOf(service.app(alice, 'PUT', `/api/chats/${id}/members/${bot.id}`, member));
  return id;
}

interface NewPost {
  readonly id: number;
  readonly external_id: string;
  readonly message_id: number;
}

const newestPost = async (channel: number): Promise<NewPost> =>
  (await resultOf(service.app(alice, 'GET', `/api/chats/${channel}/posts?limit=1`))).items[0];

async function write(channel: number, message: object): Promise<NewPost> {
  await resultOf(service.app(alice, 'POST', `/api/chats/${channel}/messages`, message));
  return newestPost(channel);
}

async function publish(channel: number, method: string, params: object): Promise<NewPost> {
  await resultOf(service.bot(bot, method, { chat_id: channel, ...params }));
  return newestPost(channel);
}

const keys = () => makeKeys(Number(service.env.PARTITIONS ?? 64));

const unescaped = (html: string) =>
  html
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

const metaOf = (page: string, name: string) => {
  const found = new RegExp(`<meta (?:name|property)="${name}" content="([^"<>]*)" />`).exec(page);
  return found && unescaped(found[1] as string);
};
const elementOf = (page: string, opening: string) => {
  const found = new RegExp(`<${opening}>([^<>]*)<`).exec(page);
  return found && unescaped(found[1] as string);
};

describe('readers without an account can open a post of a public channel', () => {
  test('the page of a post shows the post and a preview card without an account or scripts, and hides the author', async () => {
    const { id, external_id } = await write(await newChannel(), { text: 'High water\nat noon' });
    const react = async (user: TestUser, emoji: string) =>
      expect((await service.app(user, 'POST', `/api/posts/${id}/reactions`, { emoji })).status).toBe(200);
    await react(bob, '❤');
    await react(bob, '🔥');
    await react(alice, '🔥');
    const { status, headers, text: page } = await load(`/post/${external_id}`);
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    const url = `${base}/post/${external_id}`;
    expect(elementOf(page, 'title')).toBe('News');
    expect(page).toContain(`<link rel="canonical" href="${url}" />`);
    const names = ['description', 'og:type', 'og:title', 'og:description', 'og:url', 'og:image', 'robots'];
    expect(names.map((name) => metaOf(page, name))).toEqual([
      ...['High water at noon', 'article', 'News', 'High water at noon', url, null, null],
    ]);
    expect(elementOf(page, 'p class="text" dir="auto" lang=""')).toBe('High water\nat noon');
    expect([...page.matchAll(/<li><span>([^<]*)<\/span> (\d+)<\/li>/g)].map(([, ...of]) => of)).toEqual([
      ['🔥', '2'],
      ['❤️', '1'],
    ]);
    expect(page).toContain(`href="/app#/post/${external_id}"`);
    for (const hidden of ['alice', 'bob', alice.first_name, String(alice.id)])
      expect(page).not.toContain(hidden);
  });

  test('the page of a post has a strict content security policy, loads everything from its own host, and may be cached for a minute', async () => {
    const { external_id } = await write(await newChannel(), { text: 'short' });
    const { headers, text: page } = await load(`/post/${external_id}`);
    const app = (await load('/app')).headers;
    for (const name of ['x-content-type-options', 'x-frame-options', 'referrer-policy'])
      expect(headers[name], name).toBe(app[name]);
    const policy = headers['content-security-policy'] ?? '';
    for (const part of ["default-src 'none'", "script-src 'self'", "trusted-types 'none'"])
      expect(policy.split('; ')).toContain(part);
    expect(policy).not.toMatch(/unsafe|\*|https:|data:|blob:/);
    expect(page).not.toMatch(
      /<script(?! type="module" src="\/app\/post\/assets\/[\w-]+\.js"><\/script>)|style=/,
    );
    const loaded = [...page.matchAll(/<(?:script|link|img)[^>]* (?:src|href)="(\/[^"]+)"/g)];
    expect(loaded.length).toBeGreaterThan(3);
    for (const [, path] of loaded) expect((await load(path as string)).status, path).toBe(200);
    expect(headers['cache-control']).toBe('public, max-age=60');
    const again = await load(`/post/${external_id}`, { 'if-none-match': headers.etag as string });
    expect([again.status, again.text]).toEqual([304, '']);
    const head = await load(`/post/${external_id}`, {}, { method: 'HEAD' });
    expect([head.status, head.headers['content-length']]).toEqual([200, String(Buffer.byteLength(page))]);
    expect((await load('/app/post/template.html')).status).toBe(404);
    expect((await load('/app/post')).status).toBe(404);
  });

  test.each([
    `"><script>alert(1)</script><img src=x onerror='alert(2)'>`,
    `</title></p><!-- body --><!-- head --> $& $1 $' \` &lt;b&gt; &amp;`,
    `' onmouseover='x" autofocus onfocus="y`,
  ])('the page escapes the hostile text %s', async (text) => {
    const { external_id } = await write(await newChannel({ title: text }), { text });
    const { text: page } = await load(`/post/${external_id}`);
    expect(elementOf(page, 'title')).toBe(text);
    expect(elementOf(page, 'h1 dir="auto"')).toBe(text);
    expect(elementOf(page, 'p class="text" dir="auto" lang=""')).toBe(text);
    for (const name of ['description', 'og:title', 'og:description']) expect(metaOf(page, name)).toBe(text);
    const tags = [...page.matchAll(/<[^>]*>/g)].map(([tag]) => tag);
    expect(
      tags.filter((tag) => /alert|onerror|onmouse|onfocus/.test(tag) && !tag.startsWith('<meta')),
    ).toEqual([]);
    expect(page.match(/<script/g)).toHaveLength(1);
    expect(page.trimEnd().endsWith('</html>')).toBe(true);
  });

  test.each([
    ['uz-UZ,uz;q=0.9,en;q=0.8', 'uz', 'Ilovada ochish'],
    ['de, ru;q=0, hy;q=0.5', 'hy', 'Բացել հավելվածում'],
    ['de', 'en', 'Open in the application'],
    ['', 'en', 'Open in the application'],
  ])(
    'a browser with the languages "%s" gets the words of the page in %s',
    async (accepted, language, words) => {
      const { external_id } = await write(await newChannel(), { text: 'x' });
      const { headers, text: page } = await load(`/post/${external_id}`, { 'accept-language': accepted });
      expect([page.includes(`<html lang="${language}"`), page.includes(`>${words}</a>`)]).toEqual([
        true,
        true,
      ]);
      expect(headers.vary).toBe('Accept-Language, Accept-Encoding');
      expect(page).toMatch(/<time datetime="\d{4}-[^"]+Z">[^<]*\d{4}[^<]* UTC<\/time>/);
    },
  );

  test('the description in a preview card has up to 200 characters, and the page of the post has the whole text', async () => {
    const text = '🌊'.repeat(300);
    const { external_id } = await write(await newChannel(), { text });
    const { text: page } = await load(`/post/${external_id}`);
    expect(metaOf(page, 'og:description')).toBe(`${'🌊'.repeat(199)}…`);
    expect(elementOf(page, 'p class="text" dir="auto" lang=""')).toBe(text);
  });

  test('the page of a post hides the letters of spoilers', async () => {
    const entities = [{ type: 'spoiler', offset: 4, length: 10 }];
    const { external_id } = await publish(await newChannel(), 'sendMessage', {
      text: 'The butler did',
      entities,
    });
    const { text: page } = await load(`/post/${external_id}`);
    expect(page).not.toContain('butler');
    expect(metaOf(page, 'og:description')).toBe('The ▒▒▒▒▒▒ ▒▒▒');
  });

  test('editing a post changes the page of the post', async () => {
    const channel = await newChannel();
    const { external_id, message_id } = await write(channel, { text: 'before' });
    const { etag } = (await load(`/post/${external_id}`)).headers;
    const edited = `/api/chats/${channel}/messages/${message_id}`;
    await resultOf(service.app(alice, 'PATCH', edited, { text: 'after' }));
    const answer = await load(`/post/${external_id}`, { 'if-none-match': etag as string });
    expect([answer.status, metaOf(answer.text, 'description')]).toEqual([200, 'after']);
  });

  test('the preview card has a picture only if anybody can load the picture without an account', async () => {
    const channel = await newChannel();
    const imageOf = async (params: object) => {
      const { external_id } = await publish(channel, 'sendPhoto', params);
      const { text: page } = await load(`/post/${external_id}`);
      expect(page).not.toMatch(/<img(?! src="\/app\/icon\.svg")/);
      return [metaOf(page, 'og:image'), metaOf(page, 'og:description')];
    };
    const photo = 'https://media.example/a.jpg?x="y"&z';
    expect(await imageOf({ photo, caption: 'A mast' })).toEqual([photo, '🖼 A mast']);
    expect(await imageOf({ photo, has_spoiler: true })).toEqual([null, '🖼']);
    const form = new FormData();
    form.set('chat_id', String(channel));
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    );
    form.set('photo', new Blob([png]), 'a.png');
    const sent = await fetch(`${service.fronts[0].url}/bot${bot.token}/sendPhoto`, {
      method: 'POST',
      body: form,
    });
    expect(sent.status).toBe(200);
    const { external_id } = await newestPost(channel);
    expect(metaOf((await load(`/post/${external_id}`)).text, 'og:image')).toBeNull();
  });

  test('the page of a post works after Redis has evicted the post', async () => {
    const { id, external_id } = await write(await newChannel(), { text: 'kept in Postgres' });
    const redis = openAnywhere(service.redis);
    const key = keys().post(id);
    await expect.poll(() => redis.pttl(key)).toBeGreaterThan(0);
    expect(await redis.del(key)).toBe(1);
    expect(metaOf((await load(`/post/${external_id}`)).text, 'description')).toBe('kept in Postgres');
    redis.disconnect();
  });
});

describe('readers without an account cannot open a post that is not public', () => {
  const without = (page: string, id: string) => page.replaceAll(id, 'ID');

  test('private, protected, deleted and unknown posts get the same answer, which offers to sign in', async () => {
    const [open, shut] = [await newChannel(), await newChannel({ title: 'Secret', private: true })];
    const secret = await write(shut, { text: 'classified' });
    const protect_content = true;
    const guarded = await publish(open, 'sendMessage', { text: 'classified', protect_content });
    const deleted = await write(open, { text: 'classified' });
    const path = `/api/chats/${open}/messages/${deleted.message_id}`;
    await resultOf(service.app(alice, 'DELETE', path));
    const unknown = randomUUID();
    const expected = await load(`/post/${unknown}`);
    expect(expected.status).toBe(404);
    expect(expected.text).toContain(`<a class="button" href="/app#/post/${unknown}">Sign in</a>`);
    expect(metaOf(expected.text, 'robots')).toBe('noindex');
    for (const { external_id } of [secret, guarded, deleted]) {
      const answer = await load(`/post/${external_id}`);
      expect([answer.status, without(answer.text, external_id)]).toEqual([
        404,
        without(expected.text, unknown),
      ]);
      const { etag: _, date: __, ...headers } = answer.headers;
      expect({ ...expected.headers, ...headers }).toEqual(expected.headers);
      expect((await load(`/post/${external_id}`, { 'if-none-match': '*' })).status).toBe(404);
    }
    const seen = await resultOf(service.app(alice, 'GET', `/api/posts/${secret.external_id}`));
    expect(seen.text).toBe('classified');
    expect((await service.app(bob, 'GET', `/api/posts/${secret.external_id}`)).status).toBe(404);
  });

  test('a look-up of a private post reads no memberships', async () => {
    const channel = await newChannel({ private: true });
    const { external_id } = await write(channel, { text: 'x' });
    expect((await load(`/post/${external_id}`)).status).toBe(404);
    const redis = openAnywhere(service.redis);
    expect(await redis.exists(keys().member(channel, alice.id))).toBe(1);
    expect(await redis.exists(keys().member(channel, 0))).toBe(0);
    redis.disconnect();
  });

  test('a link with a numeric or malformed id shows no post', async () => {
    const { id, external_id } = await write(await newChannel(), { text: 'x' });
    for (const name of [id, '', 'x', `${external_id}/`, `${external_id}%20`, `"><b>`, '%22%3E%3Cb%3E']) {
      const { status, text: page } = await load(`/post/${name}`);
      expect([status, page.includes('href="/app">Sign in<')], String(name)).toEqual([404, true]);
      expect(page).not.toContain('<b>');
    }
    expect((await load(`/post/${external_id.toUpperCase()}`)).status).toBe(200);
  });

  longTest('with POST_PAGES=0 every link offers to sign in', async () => {
    const closed = await startFront({ POST_PAGES: '0' });
    const { external_id } = await write(await newChannel(), { text: 'inside' });
    const { status, text: page } = await load(`/post/${external_id}`, {}, { url: closed.url });
    expect([status, page.includes('inside')]).toEqual([404, false]);
  });
});

test.each([
  ['br', brotliDecompressSync],
  ['gzip', gunzipSync],
])('a page is compressed with %s if the client accepts it', async (encoding, decompress) => {
  const { external_id } = await write(await newChannel(), { text: 'water '.repeat(500) });
  const path = `/post/${external_id}`;
  const plain = await load(path);
  const url = `${service.fronts[0].url}${path}`;
  const answer = await request(url, { headers: { 'accept-encoding': encoding } });
  const { headers } = answer;
  expect(headers['content-encoding']).toBe(encoding);
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  expect(bytes.length).toBeLessThan(plain.text.length / 2);
  expect(decompress(bytes).toString()).toBe(plain.text);
  expect(headers.etag).not.toBe(plain.headers.etag);
  const again = { 'accept-encoding': encoding, 'if-none-match': headers.etag as string };
  expect((await load(path, again)).status).toBe(304);
  const missing = await load(`/post/${randomUUID()}`, { 'accept-encoding': encoding });
  expect([missing.status, missing.headers['content-encoding']]).toEqual([404, encoding]);
});

test('a POST request for the page of a post gets 405', async () => {
  const { external_id } = await write(await newChannel(), { text: 'x' });
  const answer = await load(`/post/${external_id}`, {}, { method: 'POST' });
  expect([answer.status, JSON.parse(answer.text).ok]).toEqual([405, false]);
});

longTest(
  'a client address that reads too many pages gets 429, and other addresses and calls do not',
  async () => {
    const limited = await startFront({ RATE_PER_READER: '3/86400', TRUSTED_PROXIES: '127.0.0.1/32' });
    const { external_id } = await write(await newChannel(), { text: 'x' });
    const from = (address: string, path = `/post/${external_id}`) =>
      load(path, { 'x-forwarded-for': address }, { url: limited.url });
    const statuses = [];
    for (const path of ['/post/x', ...Array(4).fill(`/post/${external_id}`)])
      statuses.push((await from('192.0.2.1', path)).status);
    expect(statuses).toEqual([404, 200, 200, 429, 429]);
    const refused = await from('192.0.2.1');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(JSON.parse(refused.text).error_code).toBe(429);
    expect((await from('192.0.2.2')).status).toBe(200);
    expect((await from('192.0.2.1', '/app')).status).toBe(200);
    const { statusCode } = await request(`${limited.url}/bot${bot.token}/getMe`);
    expect(statusCode).toBe(200);
    expect(await (await fetch(`${limited.url}/metrics`)).text()).toMatch(
      /petrel_refused_by_rate_total\{per="reader"\} 3/,
    );
  },
);

longTest.each([
  ['RATE_PER_READER', '1/86400'],
  ['RATE_PER_ADDRESS', '1/86400'],
])('a browser that exceeds %s gets a page in its language', async (setting, rate) => {
  const strict = await createFront({ ...service.env, [setting]: rate }, {});
  await strict.start();
  const browser = { accept: 'text/html,*/*;q=0.8', 'accept-language': 'ru' };
  const from = (method?: 'HEAD') => load('/post/x', browser, { url: strict.url, ...(method && { method }) });
  expect((await from()).status).toBe(404);
  const { status, headers, text: page } = await from();
  const head = await from('HEAD');
  await strict.stop();
  expect([status, headers['content-type']]).toEqual([429, 'text/html; charset=utf-8']);
  expect([headers['cache-control'], Number(headers['retry-after']) > 0]).toEqual(['no-store', true]);
  expect(headers['content-security-policy']).toContain("default-src 'none'");
  expect(page).toContain('<html lang="ru"');
  expect([elementOf(page, 'h1'), metaOf(page, 'robots')]).toEqual(['Попробуйте ещё раз', 'noindex']);
  expect([head.status, head.text]).toEqual([429, '']);
});
