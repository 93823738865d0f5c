/**
 * Tests that a front authenticates the caller before it reads the body. Otherwise unauthenticated clients could fill
 * the memory of the front (behaviour §13).
 */

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { makeToken } from '../../src/rules/token.js';
import { headOf, RawClient } from '../http/fixture.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

const mebibyte = 1024 * 1024;
let service: Service;
let owner: TestUser;
let bot: TestBot;
const clients: RawClient[] = [];

onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('owner');
  bot = await service.newBot(owner, 'uploading');
});
afterAll(async () => {
  for (const client of clients) client.destroy();
});

const port = () => Number(new URL(service.fronts[0].url).port);

async function send(line: string, ...headers: string[]): Promise<RawClient> {
  const client = new RawClient(port());
  clients.push(client);
  return client.send(headOf(line, ...headers));
}

const status = async (client: RawClient) => {
  await client.until(() => client.statuses.length > 0);
  return client.statuses[0];
};

const upload = ['Content-Type: multipart/form-data; boundary=b', `Content-Length: ${40 * mebibyte}`];
const madeUp = (kind: 'bot' | 'user') => makeToken(kind, 999_999_999, randomBytes(32));

test.each<[name: string, line: () => string, headers: () => string[], answer: number]>([
  ['a bot token that never existed', () => `POST /bot${madeUp('bot')}/sendDocument`, () => [], 401],
  ['no bot token', () => 'POST /bot/sendDocument', () => [], 401],
  ['the token of a person', () => `POST /bot${owner.token}/sendDocument`, () => [], 401],
  ['no bearer', () => 'POST /api/chats', () => [], 401],
  [
    'a bearer that never existed',
    () => 'POST /api/chats',
    () => [`Authorization: Bearer ${madeUp('user')}`],
    401,
  ],
  ['the token of a bot', () => 'POST /api/chats', () => [`Authorization: Bearer ${bot.token}`], 401],
  [
    'the token of a person on an operator endpoint',
    () => 'POST /api/admin/users',
    () => [`Authorization: Bearer ${owner.token}`],
    401,
  ],
  ['an unknown path', () => 'POST /elsewhere', () => [], 404],
  ['an unknown endpoint', () => 'POST /api/elsewhere', () => [], 404],
])('a front answers a call with %s before the body arrives', async (_, line, headers, answer) => {
  expect(await status(await send(line(), ...upload, ...headers()))).toBe(answer);
});

test('uploads by unauthenticated clients do not increase the memory use of a front', async () => {
  const { pid } = service.fronts[0];
  const residentMiB = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
  const before = residentMiB();
  const sent = await Promise.all(
    Array.from({ length: 100 }, async () => {
      const client = await send(`POST /bot${madeUp('bot')}/sendDocument`, ...upload);
      return client.send(Buffer.alloc(4 * mebibyte));
    }),
  );
  for (const client of sent) expect([401, 429]).toContain(await status(client));
  expect(residentMiB() - before).toBeLessThan(150);
  expect((await service.bot(bot, 'getMe')).status).toBe(200);
}, 60_000);

test('a call is refused if its token is revoked before the whole body has arrived', async () => {
  const body = Buffer.from(JSON.stringify({ name: 'late' }));
  const late = await service.newBot(owner, 'late');
  const client = await send(
    `POST /bot${late.token}/setMyName`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  );
  await client.send(body.subarray(0, 5));
  await resultOf(service.bot(late, 'getMe'));
  await resultOf(service.app(owner, 'POST', `/api/me/bots/${late.id}/regenerate_token`));
  await client.send(body.subarray(5));
  expect(await status(client)).toBe(401);
});
