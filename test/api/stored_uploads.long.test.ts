import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { petrel } from '../support/command.js';
import {
  type Answer,
  resultOf,
  type Service,
  startService,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { field, post } from '../support/uploads.js';

const max = 64 * 1024;
let service: Service;
let db: pg.Pool;

beforeAll(async () => {
  service = await startService({
    combined: true,
    fronts: 2,
    extraEnv: { MEDIA_DAYS: '1', UPLOAD_BYTES_TOTAL: String(max) },
  });
  db = new pg.Pool({ connectionString: service.databaseUrl, max: 1 });
});
afterAll(async () => {
  await db?.end();
  await service?.stop();
});

const file = (name: string, bytes: number) => ({
  head: `Content-Disposition: form-data; name="${name}"; filename="a.bin"`,
  body: Buffer.alloc(bytes, 'x'),
});
const upload = (bot: TestBot, chat: number, bytes: number, front = 0): Promise<Answer> =>
  post(`${service.fronts[front]?.url}/bot${bot.token}/sendDocument`, [
    field('chat_id', chat),
    file('document', bytes),
  ]);
const stored = async (user: TestUser) =>
  resultOf(service.app(user, 'GET', '/api/me/uploads')) as Promise<{ bytes: number; bytes_max: number }>;
const isRefused = ({ status, body }: Answer) => {
  expect([status, body]).toEqual([
    400,
    {
      ok: false,
      error_code: 400,
      description: `Bad Request: stored files of the owner would exceed ${max} bytes`,
    },
  ]);
};

async function newOwner(name: string) {
  const owner = await service.newUser(name);
  const bots = [await service.newBot(owner, name), await service.newBot(owner, name)] as const;
  for (const bot of bots) await service.openChat(owner, bot);
  return { owner, bots };
}
const files = () =>
  readdirSync(service.env.FILES_DIR as string, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

test('all bots of an owner share one upload limit', async () => {
  const { owner, bots } = await newOwner('total');
  const other = await newOwner('apart');
  const { document } = await resultOf(upload(bots[0], owner.id, 40 * 1024));
  expect(await stored(owner)).toEqual({ bytes: 40 * 1024, bytes_max: max });
  const before = files().length;
  expect((await upload(bots[0], 999_999, 20 * 1024)).status).toBe(400);
  expect([await stored(owner), files().length]).toEqual([{ bytes: 40 * 1024, bytes_max: max }, before]);
  await resultOf(upload(bots[1], owner.id, 24 * 1024, 1));
  for (const bot of bots) isRefused(await upload(bot, owner.id, 1, 1));
  expect(files()).toHaveLength(before + 1);
  const again = { chat_id: owner.id, document: document.file_id };
  await resultOf(service.bot(bots[1], 'sendDocument', again));
  expect(await stored(owner)).toEqual({ bytes: max, bytes_max: max });
  await resultOf(upload(other.bots[0], other.owner.id, 1));
  expect((await stored(other.owner)).bytes).toBe(4_096);
});

test('`petrel doctor` prints the total of stored bytes, and the owner with the most bytes', async () => {
  await db.query('update stored_totals set bytes = 0');
  const [most, less] = [await newOwner('most'), await newOwner('less')];
  expect((await petrel(service.env, 'doctor')).out).toMatch(/^uploads {6}none stored$/m);
  await db.query('insert into stored_totals values ($1, 3145728), ($2, 1048576)', [
    most.owner.id,
    less.owner.id,
  ]);
  const { out } = await petrel(service.env, 'doctor');
  expect(out).toContain(
    `uploads      4 MiB stored; the owner with most (${most.owner.id}) has 3 MiB of 0.1 MiB`,
  );
  await db.query('delete from stored_totals where owner_id = any($1)', [[most.owner.id, less.owner.id]]);
});

test('an album over the upload limit is refused, and its stored bytes are freed', async () => {
  const { owner, bots } = await newOwner('album');
  const media = ['a', 'b', 'c'].map((name) => ({ type: 'document', media: `attach://${name}` }));
  const answer = await post(`${service.fronts[0].url}/bot${bots[0].token}/sendMediaGroup`, [
    field('chat_id', owner.id),
    field('media', JSON.stringify(media)),
    ...['a', 'b', 'c'].map((name) => file(name, 30 * 1024)),
  ]);
  isRefused(answer);
  expect((await stored(owner)).bytes).toBe(0);
});

test('a chat photo that exceeds the upload limit is refused, and its stored bytes are freed', async () => {
  const { owner, bots } = await newOwner('photo');
  const chat = await service.newGroup(owner, 'Photo');
  const side = { width: 300, height: 300, channels: 3, background: '#268' } as const;
  const body = new Uint8Array(await sharp({ create: side }).png().toBuffer());
  const put = () =>
    fetch(`${service.fronts[0]?.url}/api/chats/${chat}/photo`, {
      ...{ method: 'PUT', body, headers: { Authorization: `Bearer ${owner.token}` } },
    });
  // Leaves room for only one of the two stored sizes of the photo, so storing both sizes fails.
  await resultOf(upload(bots[0], owner.id, max - 6 * 1024));
  const before = files().length;
  expect((await put()).status).toBe(400);
  expect([(await stored(owner)).bytes, files().length]).toEqual([max - 6 * 1024, before]);
  expect(await resultOf(service.app(owner, 'GET', `/api/chats/${chat}`))).not.toHaveProperty('avatar');
});

test('simultaneous uploads on two nodes cannot exceed the upload limit', async () => {
  const { owner, bots } = await newOwner('race');
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) => upload(n % 3 ? bots[0] : bots[1], owner.id, 10 * 1024, n % 2)),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(6);
  for (const answer of answers) if (answer.status !== 200) isRefused(answer);
  expect((await stored(owner)).bytes).toBe(60 * 1024);
});

test('the sweep frees the bytes of removed files and of files that were never saved', async () => {
  const { owner, bots } = await newOwner('sweep');
  const { message_id } = await resultOf(upload(bots[0], owner.id, 60 * 1024));
  await resultOf(service.bot(bots[0], 'deleteMessage', { chat_id: owner.id, message_id }));
  isRefused(await upload(bots[0], owner.id, 8 * 1024));
  const days = 2;
  const at = new Date(Date.now() - days * 86_400_000);
  for (const path of files()) utimesSync(path, at, at);
  await db.query("insert into stored_files (key, owner_id, bytes) values (repeat('ab', 16), $1, 4096)", [
    owner.id,
  ]);
  await db.query('update stored_totals set bytes = bytes + 4096 where owner_id = $1', [owner.id]);
  await db.query(`update stored_files set created_at = now() - interval '${days} days'`);
  await db.query("update retention set ended_at = 'epoch'");
  await vi.waitFor(async () => expect((await stored(owner)).bytes).toBe(0), {
    timeout: 20_000,
    interval: 250,
  });
  const { rows } = await db.query('select 1 from stored_files where owner_id = $1', [owner.id]);
  expect(rows).toEqual([]);
  await resultOf(upload(bots[0], owner.id, 60 * 1024));
});

test('files that a person sends count against the stored bytes of the person, even when several files are sent at the same time', async () => {
  const { owner, bots } = await newOwner('sender');
  const send = (path: string, parts: Parameters<typeof post>[1], front = 0) =>
    post(`${service.fronts[front]?.url}/api/chats/${bots[0].id}/${path}`, parts, {
      headers: { authorization: `Bearer ${owner.token}` },
    });
  const before = files().length;
  const calls = Array.from({ length: 20 }, (_, n) => send('messages', [file('document', 8_192)], n % 2));
  const answers = await Promise.all(calls);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(8);
  for (const answer of answers.filter(({ status }) => status !== 200)) isRefused(answer);
  expect(await stored(owner)).toMatchObject({ bytes: max });
  const media = JSON.stringify(['a', 'b'].map((name) => ({ type: 'document', media: `attach://${name}` })));
  isRefused(await send('albums', [field('media', media), file('a', 10), file('b', 10)]));
  expect(await stored(owner)).toMatchObject({ bytes: max });
  expect(files()).toHaveLength(before + 8);
});
