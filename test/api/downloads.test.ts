import { execFile } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { RawClient } from '../http/fixture.js';
import type { Front } from '../support/role_process.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { longTest } from '../support/tiers.js';
import { field, post } from '../support/uploads.js';

const run = promisify(execFile);

let service: Service;
let user: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'files');
  await service.openChat(user, bot);
});

const root = (front = 0) => service.fronts[front]?.url as string;
const fileUrl = (path: string, token = bot.token, front = 1) => `${root(front)}/file/bot${token}/${path}`;

async function upload(bytes: Buffer, filename: string): Promise<string> {
  const head = `Content-Disposition: form-data; name="document"; filename="${filename}"`;
  const sent = await resultOf(
    post(`${root()}/bot${bot.token}/sendDocument`, [field('chat_id', user.id), { head, body: bytes }]),
  );
  return sent.document.file_id;
}

test('downloads support ranges, conditional requests and HEAD', async () => {
  const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * 31) & 255));
  const file_id = await upload(bytes, 'data \\"1\\" ü.html');
  const { file_path } = await resultOf(service.bot(bot, 'getFile', { file_id }));
  const url = fileUrl(file_path);
  const get = (headers: Record<string, string> = {}, method = 'GET', at = url) =>
    fetch(at, { headers, method });
  const whole = await get();
  expect(Object.fromEntries(whole.headers)).toMatchObject({
    'content-length': '200000',
    'accept-ranges': 'bytes',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'content-disposition': `attachment; filename="data _1_ _.html"; filename*=UTF-8''data%20%221%22%20%C3%BC.html`,
  });
  expect(Buffer.from(await whole.arrayBuffer())).toEqual(bytes);
  const etag = whole.headers.get('etag') as string;
  expect(etag).toMatch(/^"[\w-]{16}"$/);

  const part = await get({ range: 'bytes=100000-100009' });
  expect([part.status, part.headers.get('content-range'), part.headers.get('content-length')]).toEqual([
    206,
    'bytes 100000-100009/200000',
    '10',
  ]);
  expect(Buffer.from(await part.arrayBuffer())).toEqual(bytes.subarray(100_000, 100_010));
  const tail = await get({ range: 'bytes=-5', 'if-range': etag });
  expect(Buffer.from(await tail.arrayBuffer())).toEqual(bytes.subarray(-5));
  expect((await get({ range: 'bytes=0-4', 'if-range': '"other"' })).status).toBe(200);
  const beyond = await get({ range: 'bytes=200000-' });
  expect([beyond.status, beyond.headers.get('content-range'), await beyond.json()]).toEqual([
    416,
    'bytes */200000',
    { ok: false, error_code: 416, description: 'Range Not Satisfiable' },
  ]);
  for (const tags of [etag, `"x", ${etag}`, `W/${etag}`, '*'])
    expect((await get({ 'if-none-match': tags })).status).toBe(304);
  expect((await get({ 'if-none-match': '"x"' })).status).toBe(200);
  const head = await get({}, 'HEAD');
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '200000', '']);

  const answer = async (response: Promise<Response>) => {
    const { status } = await response;
    return [status, await (await response).json()];
  };
  const unauthorized = [401, { ok: false, error_code: 401, description: 'Unauthorized' }];
  const notFound = [404, { ok: false, error_code: 404, description: 'Not Found' }];
  const wrongToken = bot.token.slice(0, -1) + (bot.token.endsWith('0') ? '1' : '0');
  expect(await answer(get({}, 'GET', fileUrl(file_path, wrongToken)))).toEqual(unauthorized);
  expect(await answer(get({}, 'GET', fileUrl('photos/x.jpg', 'x')))).toEqual(unauthorized);
  for (const path of [
    '',
    'x',
    'documents/x.html',
    file_path.replace('documents', 'photos'),
    `${file_path}x`,
    '../secrets.json',
    '%2e%2e/x',
  ])
    expect(await answer(get({}, 'GET', fileUrl(path))), path).toEqual(notFound);
  expect((await get({}, 'POST')).status).toBe(405);

  const mine = await fetch(`${root()}/api/files/${file_id}`, {
    headers: { authorization: `Bearer ${user.token}`, range: 'bytes=1-3' },
  });
  expect([mine.status, Buffer.from(await mine.arrayBuffer())]).toEqual([206, bytes.subarray(1, 4)]);
  expect((await fetch(`${root()}/api/files/${file_id}`)).status).toBe(401);
  expect(
    (await fetch(`${root()}/api/files/xyz`, { headers: { authorization: `Bearer ${user.token}` } })).status,
  ).toBe(404);
  for (const front of service.fronts) {
    expect(front.log()).not.toContain(bot.token);
    expect(front.log()).not.toContain('failed unexpectedly');
  }
});

longTest(
  'a large file is streamed to many slow readers without being loaded into memory',
  async () => {
    const large = Buffer.alloc(49 * 1024 * 1024);
    large.write('start');
    const file_id = await upload(large, 'large.bin');
    const { file_path } = await resultOf(service.bot(bot, 'getFile', { file_id }));
    const front = service.fronts[1] as Front;
    const memory = async () =>
      Number((await run('ps', ['-o', 'rss=', '-p', String(front.pid)])).stdout) * 1024;
    const before = await memory();
    const readers = await Promise.all(
      Array.from({ length: limits.downloads_per_caller_max }, async () => {
        const reader = new RawClient(front.port);
        reader.socket.removeAllListeners('data');
        reader.socket.pause();
        return reader.send(`GET /file/bot${bot.token}/${file_path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      }),
    );
    await sleep(1_000);
    // If the front kept a complete copy of the file for each reader, it would need three gigabytes of memory.
    expect((await memory()) - before).toBeLessThan(120 * 1024 * 1024);
    // Polls, because on a busy machine the front may not have read all requests yet.
    const denied = async () => {
      const { status, headers, body } = await fetch(fileUrl(file_path));
      await body?.cancel();
      return [status, headers.get('retry-after')];
    };
    await expect.poll(denied).toEqual([429, '1']);
    const mine = { authorization: `Bearer ${user.token}`, range: 'bytes=0-4' };
    const others = await fetch(`${root(1)}/api/files/${file_id}`, { headers: mine });
    expect(await others.text()).toBe('start');
    for (const reader of readers) reader.destroy();
    // Polls, because the front still counts a closed connection as a reader until it notices the close.
    const isWhole = async () => {
      const answer = await fetch(fileUrl(file_path));
      return Buffer.from(await answer.arrayBuffer()).equals(large);
    };
    await expect.poll(isWhole, { timeout: 20_000 }).toBe(true);
    // A file descriptor may be closed while the directory is read. Such a descriptor is left out.
    const openFiles = () =>
      readdirSync(`/proc/${front.pid}/fd`).flatMap((fd) => {
        try {
          return readlinkSync(`/proc/${front.pid}/fd/${fd}`);
        } catch {
          return [];
        }
      });
    const stored = () => openFiles().filter((path) => path.startsWith(service.env.FILES_DIR as string));
    await expect.poll(stored).toEqual([]);
  },
  60_000,
);
