import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from 's3rver';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resultOf, type Service, startService } from '../support/service.js';
import { field, post } from '../support/uploads.js';

const dir = mkdtempSync(join(tmpdir(), 'petrel-s3-'));
let storage: S3rver;
let service: Service;

beforeAll(async () => {
  storage = new S3rver({
    ...{ port: 0, address: '127.0.0.1', silent: true, directory: dir },
    configureBuckets: [{ name: 'petrel', configs: [] }],
  });
  const { port } = await storage.run();
  const extraEnv = {
    FILES_S3_URL: `http://127.0.0.1:${port}`,
    FILES_S3_BUCKET: 'petrel',
    FILES_S3_KEY_ID: 'S3RVER',
    FILES_S3_SECRET: 'S3RVER',
  };
  service = await startService({ combined: true, extraEnv });
});
afterAll(async () => {
  await service?.stop();
  await storage?.close().catch(() => undefined);
  await rm(dir, { recursive: true, force: true });
});

test('a client can download a range of a file in S3', async () => {
  const user = await service.newUser('ann');
  const bot = await service.newBot(user, 'files');
  await service.openChat(user, bot);
  const root = service.fronts[0].url;
  const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, i) => (i * 13) & 255));
  const head = 'Content-Disposition: form-data; name="document"; filename="a.bin"';
  const send = () =>
    post(`${root}/bot${bot.token}/sendDocument`, [field('chat_id', user.id), { head, body: bytes }]);
  const { document } = await resultOf(send());
  const { file_path } = await resultOf(service.bot(bot, 'getFile', { file_id: document.file_id }));
  const get = (headers = {}) => fetch(`${root}/file/bot${bot.token}/${file_path}`, { headers });
  expect(Buffer.from(await (await get()).arrayBuffer()).equals(bytes)).toBe(true);
  const part = await get({ range: 'bytes=2999990-' });
  expect([part.status, Buffer.from(await part.arrayBuffer())]).toEqual([206, bytes.subarray(-10)]);

  await storage.close();
  const refused = await send();
  expect([refused.status, refused.body.parameters]).toEqual([503, { retry_after: 2 }]);
  expect((await get()).status).toBe(503);
  expect((await service.bot(bot, 'sendMessage', { chat_id: user.id, text: 'goes on' })).status).toBe(200);
}, 60_000);
