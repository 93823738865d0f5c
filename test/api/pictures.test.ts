import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import sharp from 'sharp';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { png } from '../support/samples.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let owner: TestUser;
let other: TestUser;
let bot: TestBot;
let start: Buffer;
let earlier: readonly string[];

onSharedService(async (running) => {
  service = running;
  earlier = await stored();
  [owner, other] = [await service.newUser('olga'), await service.newUser('sam')];
  bot = await service.newBot(owner, 'shown');
  start = await sharp({ create: { width: 640, height: 360, channels: 3, background: 'teal' } })
    .jpeg()
    .toBuffer();
});

const kinds = ['avatar', 'start_picture'] as const;
const pathOf = (kind: string, of = bot) => `/api/me/bots/${of.id}/${kind}`;
const given = (kind: string) => (kind === 'avatar' ? png(200, 100) : start);

async function put(
  user: TestUser,
  path: string,
  body: Buffer,
  headers: Record<string, string> = {},
  front = 0,
) {
  const answer = await request(`${service.fronts[front as 0].url}${path}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${user.token}`, 'content-type': 'image/png', ...headers },
    body,
  });
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  return { status: answer.statusCode, body: (await answer.body.json()) as any };
}

const get = (url: string, token: string, headers: Record<string, string> = {}, front = 1) =>
  request(`${service.fronts[front as 0].url}${url}`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
  });

const stored = async () =>
  (await readdir(service.env.FILES_DIR as string, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && !join(entry.parentPath).endsWith('incoming'))
    .map(({ name }) => name)
    .filter((name) => !earlier?.includes(name));

test.each(kinds)(
  'interface §2: the owner sets, replaces and removes the %s, which people see before Start',
  async (kind) => {
    const own = await service.newBot(owner, kind.slice(0, 5));
    const path = pathOf(kind, own);
    const missing = { ok: false, error_code: 404, description: 'Not Found: picture not found' };
    for (const verb of ['GET', 'DELETE'])
      expect((await service.app(owner, verb, path)).body).toEqual(missing);
    const before = await stored();
    const set = await put(owner, path, given(kind));
    expect(set.status).toBe(200);
    const [width, height] = kind === 'avatar' ? [512, 512] : [640, 360];
    const size = {
      url: expect.stringMatching(/^\/api\/files\/[\w-]+$/),
      width,
      height,
      file_size: expect.any(Number),
    };
    const small = { ...size, width: 128, height: 128 };
    expect(set.body.result).toEqual(kind === 'avatar' ? { ...size, small } : size);
    const shown = async (front: number) => {
      const [mine, settings, page] = await Promise.all([
        service.app(owner, 'GET', path, undefined, front),
        service.app(owner, 'GET', `/api/me/bots/${own.id}`, undefined, front),
        service.app(other, 'GET', `/api/bots/${own.username}`, undefined, front),
      ]);
      return [mine.body.result, settings.body.result[kind], page.body.result[kind]];
    };
    for (const front of [0, 1]) expect(await shown(front)).toEqual(Array(3).fill(set.body.result));
    const reader = await service.newUser('reader');
    await service.openChat(reader, own);
    const listed = async () => {
      const chats = await Promise.all([
        resultOf(service.app(reader, 'GET', '/api/chats')).then(({ items }) => items),
        resultOf(service.app(reader, 'GET', `/api/chats/${own.id}`, undefined, 1)),
      ]);
      return chats.flat().map(({ avatar }: { avatar?: unknown }) => avatar);
    };
    const face = (picture: unknown) => Array(2).fill(kind === 'avatar' ? picture : undefined);
    expect(await listed()).toEqual(face(set.body.result));

    const image = await get(set.body.result.url, other.token);
    const bytes = Buffer.from(await image.body.arrayBuffer());
    expect(bytes.length).toBe(set.body.result.file_size);
    expect(await sharp(bytes).metadata()).toMatchObject({ format: 'webp', width, height });
    expect(image.headers).toMatchObject({
      'content-type': 'image/webp',
      'cache-control': 'private, max-age=86400, immutable',
      'x-content-type-options': 'nosniff',
    });
    const fresh = await get(set.body.result.url, other.token, {
      'if-none-match': String(image.headers.etag),
    });
    expect(fresh.statusCode).toBe(304);
    expect((await get(set.body.result.url, 'nobody')).statusCode).toBe(401);

    const again = await put(owner, path, given(kind), {}, 1);
    expect(again.body.result.url).not.toBe(set.body.result.url);
    for (const front of [0, 1]) expect(await shown(front)).toEqual(Array(3).fill(again.body.result));
    expect(await listed()).toEqual(face(again.body.result));
    expect((await get(set.body.result.url, other.token)).statusCode).toBe(404);
    expect((await stored()).length).toBe(before.length + (kind === 'avatar' ? 2 : 1));

    expect(await resultOf(service.app(owner, 'DELETE', path))).toBe(true);
    for (const front of [0, 1]) expect((await shown(front)).slice(1)).toEqual([undefined, undefined]);
    expect(await listed()).toEqual([undefined, undefined]);
    expect(await stored()).toEqual(before);
  },
);

test.each(kinds)(
  "interface §2: setting the %s of another person's bot is refused before the picture is checked",
  async (kind) => {
    await put(owner, pathOf(kind), given(kind));
    const before = (await service.app(owner, 'GET', pathOf(kind))).body;
    const forbidden = { ok: false, error_code: 403, description: 'Forbidden: not the owner of the bot' };
    const unknown = { ok: false, error_code: 404, description: 'Not Found: bot not found' };
    for (const bytes of [Buffer.alloc(0), Buffer.from('no picture'), given(kind)]) {
      expect((await put(other, pathOf(kind), bytes)).body).toEqual(forbidden);
      expect((await put(owner, pathOf(kind, { ...bot, id: 1 }), bytes)).body).toEqual(unknown);
      expect((await put({ ...owner, token: bot.token }, pathOf(kind), bytes)).status).toBe(401);
    }
    for (const verb of ['GET', 'DELETE'])
      expect((await service.app(other, verb, pathOf(kind))).body).toEqual(forbidden);
    expect((await service.app(owner, 'GET', pathOf(kind))).body).toEqual(before);
  },
);

test('behaviour §11: a refused picture changes nothing, regardless of its content type', async () => {
  const path = pathOf('start_picture');
  await put(owner, path, start);
  const before = (await service.app(owner, 'GET', path)).body;
  const files = await stored();
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="640" height="360"/>');
  for (const [bytes, type, text] of [
    [svg, 'image/png', 'picture must be a PNG, JPEG or WebP image'],
    [png(640, 361), 'image/png', 'start picture must be 640x360 pixels'],
    [start.subarray(0, 900), 'image/jpeg', 'IMAGE_PROCESS_FAILED'],
    [
      Buffer.from('{"url": "https://a.example/"}'),
      'application/json',
      'picture must be a PNG, JPEG or WebP image',
    ],
    [Buffer.alloc(0), 'image/png', 'file must be non-empty'],
  ] as const) {
    const answer = await put(owner, path, bytes, { 'content-type': type });
    expect(answer.body).toEqual({ ok: false, error_code: 400, description: `Bad Request: ${text}` });
  }
  expect((await service.app(owner, 'GET', path)).body).toEqual(before);
  expect(await stored()).toEqual(files);
  for (const type of ['application/octet-stream', 'application/json', 'text/plain', 'image/svg+xml'])
    expect((await put(owner, path, start, { 'content-type': type })).status).toBe(200);
});

test('a picture endpoint accepts a body of 10 MiB, and any other endpoint refuses a body of this size', async () => {
  const padded = (bytes: number) => Buffer.concat([start, Buffer.alloc(bytes - start.length)]);
  const max = limits.picture_bytes_max;
  expect((await put(owner, pathOf('start_picture'), padded(max))).status).toBe(200);
  const tooLarge = { ok: false, error_code: 413, description: 'Request Entity Too Large' };
  expect((await put(owner, pathOf('start_picture'), padded(max + 1))).body).toEqual(tooLarge);
  const elsewhere = `/api/me/bots/${bot.id}/write_access`;
  expect((await put(owner, elsewhere, padded(limits.body_bytes_max + 1))).body).toEqual(tooLarge);
});

test('behaviour §1: a call that is repeated with its idempotency key sets a picture once', async () => {
  const path = pathOf('avatar');
  const key = { 'idempotency-key': 'one picture' };
  const first = await put(owner, path, png(64, 64), key);
  await put(owner, path, png(80, 80));
  const present = await resultOf(service.app(owner, 'GET', path));
  expect((await put(owner, path, png(64, 64), key, 1)).body).toEqual(first.body);
  expect(await resultOf(service.app(owner, 'GET', path))).toEqual(present);
  const other = await put(owner, path, png(65, 64), key);
  expect(other.body.description).toBe('Bad Request: idempotency key was used with other parameters');
});

test('no file in the table unused_files is still in use', async () => {
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  try {
    const { rows } = await client.query('select key from unused_files');
    const unused = rows.map(({ key }) => key);
    const all = await stored();
    expect(unused.filter((key) => all.includes(key))).toEqual([]);
    const shown = await client.query(
      "select jsonb_path_query(pictures, '$.*[*].key') #>> '{}' as key from bots",
    );
    const used = shown.rows.map(({ key }) => key).filter((key) => !earlier.includes(key));
    expect(all.toSorted()).toEqual(used.toSorted());
  } finally {
    await client.end();
  }
});
