import { randomBytes } from 'node:crypto';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeToken } from '../../src/rules/token.js';
import { createClientAddress } from '../../src/server/client_address.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';

const burst = 12;
let service: Service;
let owner: TestUser;
let bot: TestBot;

beforeAll(async () => {
  service = await startService({
    combined: true,
    fronts: 2,
    extraEnv: {
      GUESSES_BURST: String(burst),
      GUESSES_PER_MINUTE: '1',
      TRUSTED_PROXIES: '127.0.0.0/8,10.0.0.0/8',
    },
  });
  owner = await service.newUser('owner');
  bot = await service.newBot(owner, 'guarded');
});
afterAll(() => service?.stop());

async function from(address: string, path: string, bearer = '', front = 0) {
  const url = `${service.fronts[front]?.url}${path}`;
  const headers = { 'x-forwarded-for': address, ...(bearer ? { authorization: `Bearer ${bearer}` } : {}) };
  const answer = await request(url, { headers });
  const body = (await answer.body.json()) as { parameters?: { retry_after: number } };
  return { status: answer.statusCode, retryAfter: answer.headers['retry-after'], body };
}
const madeUp = (kind: 'bot' | 'user' = 'bot', id = bot.id) => makeToken(kind, id, randomBytes(32));
const getMe = (token: string) => `/bot${token}/getMe`;

test('a client gets 429 after a burst of wrong tokens, counted over all fronts', async () => {
  const client = '192.0.2.1';
  const kinds = [
    () => from(client, getMe(madeUp())),
    () => from(client, getMe('malformed'), '', 1),
    () => from(client, `/file/bot${madeUp()}/photos/1`, '', 1),
    () => from(client, '/api/me', madeUp('user', owner.id)),
    () => from(client, '/api/me', 'malformed', 1),
    () => from(client, getMe(madeUp('bot', 999_999_999))),
  ];
  const answers = await Promise.all(
    Array.from({ length: 4 * burst }, (_, i) => (kinds[i % kinds.length] as (typeof kinds)[number])()),
  );
  const statuses = answers.map(({ status }) => status);
  expect(statuses.filter((status) => status === 401)).toHaveLength(burst);
  expect(statuses.filter((status) => status === 429)).toHaveLength(3 * burst);
  for (const { status, retryAfter, body } of answers) {
    if (status !== 429) continue;
    expect(body.parameters?.retry_after).toBeGreaterThan(30);
    expect(body.parameters?.retry_after).toBeLessThanOrEqual(60);
    expect(retryAfter).toBe(String(body.parameters?.retry_after));
  }
  // The limit does not apply to calls with valid tokens from this address, or to other clients behind the same
  // balancer.
  for (const front of [0, 1]) {
    expect((await from(client, getMe(bot.token), '', front)).status).toBe(200);
    expect((await from(client, '/api/me', owner.token, front)).status).toBe(200);
    expect((await from('192.0.2.2', getMe(madeUp()), '', front)).status).toBe(401);
  }
});

test('a call with a revoked token does not count as a wrong token', async () => {
  const client = '192.0.2.3';
  const person = await service.newUser('person');
  const before = await service.newBot(owner, 'replaced');
  await resultOf(service.app(owner, 'POST', `/api/me/bots/${before.id}/regenerate_token`));
  const path = `/api/admin/users/${person.id}/tokens`;
  await resultOf(service.app({ token: service.adminToken }, 'DELETE', path));
  const answers = await Promise.all(
    Array.from({ length: burst }, (_, i) => [
      from(client, getMe(before.token), '', i % 2),
      from(client, '/api/me', person.token, i % 2),
    ]).flat(),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
  expect((await from(client, '/api/me')).status).toBe(401);
  const guesses = await Promise.all(Array.from({ length: burst + 1 }, () => from(client, getMe('x'))));
  expect(guesses.filter(({ status }) => status === 429)).toHaveLength(1);
  // A revoked token still gets 401, although calls with unknown tokens now get 429.
  expect((await from(client, getMe(before.token))).status).toBe(401);
});

test('guesses from IPv6 addresses are counted per /64 network', async () => {
  const guess = (n: number) => from(`2001:db8:1:2::${n.toString(16)}`, getMe('x'), '', n % 2);
  const answers = await Promise.all(Array.from({ length: burst + 2 }, (_, i) => guess(i + 1)));
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(2);
  expect((await from('2001:db8:1:3::1', getMe('x'))).status).toBe(401);
});

test.each<[trusted: string[], peer: string, header: string, client: string]>([
  [[], '192.0.2.1', '203.0.113.9', '192.0.2.1'],
  [['10.0.0.0/8'], '192.0.2.1', '203.0.113.9', '192.0.2.1'],
  [['10.0.0.0/8'], '10.0.0.1', '203.0.113.9', '203.0.113.9'],
  [['10.0.0.0/8'], '10.0.0.1', '198.51.100.1, 203.0.113.9', '203.0.113.9'],
  [['10.0.0.0/8'], '10.0.0.1', '198.51.100.1,203.0.113.9, 10.0.0.7', '203.0.113.9'],
  [['10.0.0.0/8'], '10.0.0.1', '10.0.0.9,10.0.0.7', '10.0.0.9'],
  [['10.0.0.0/8'], '10.0.0.1', '203.0.113.9, nonsense, 10.0.0.7', '10.0.0.7'],
  [['10.0.0.0/8'], '10.0.0.1', '203.0.113.9:4711', '203.0.113.9'],
  [['10.0.0.0/8'], '10.0.0.1', '', '10.0.0.1'],
  [['10.0.0.0/8'], '::ffff:10.0.0.1', '::ffff:203.0.113.9', '203.0.113.9'],
  [['fd00::/8'], 'fd00::1', '[2001:db8:a:b:c::1]:4711', '2001:db8:a:b::/64'],
  [['10.0.0.1/32'], '10.0.0.2', '203.0.113.9', '10.0.0.2'],
  [['10.0.0.0/8'], '', '203.0.113.9', ''],
])(
  'with trusted proxies %j, a request from %s with X-Forwarded-For %j has the client address %s',
  (trusted, remoteAddress, forwardedFor, client) => {
    expect(createClientAddress(trusted)({ remoteAddress, forwardedFor })).toBe(client);
  },
);
