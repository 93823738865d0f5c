import pg from 'pg';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { readConfig } from '../../src/config/config.js';
import { createLog } from '../../src/obs/log.js';
import { addAdmin, listAdmins, listCalls, revokeAdmin } from '../../src/operations/admin.js';
import { type Backends, openBackends } from '../../src/processes/backends.js';
import { isAdminToken, maskTokens } from '../../src/rules/token.js';
import { petrel } from '../support/command.js';
import { resultOf, type Service, startService, type TestUser } from '../support/service.js';
import { longTest } from '../support/tiers.js';

// Allows more time, because some commands run in a separate process.
vi.setConfig({ testTimeout: 120_000 });

let service: Service;
let backends: Backends;
let db: pg.Client;
let root: { readonly token: string };
let alice: TestUser;

beforeAll(async () => {
  service = await startService({
    combined: true,
    fronts: 2,
    frontEnv: {
      TRUSTED_PROXIES: '127.0.0.1/32',
      ADMIN_ALLOW_CIDRS: '127.0.0.0/8,192.0.2.0/24,2001:db8::7/128',
    },
  });
  backends = await openBackends(readConfig(service.env), 'admin', createLog('warn', 'admin'), 'never');
  root = { token: service.adminToken };
  alice = await service.newUser('alice');
  db = new pg.Client(service.databaseUrl);
  await db.connect();
});
afterAll(async () => {
  await db?.end();
  await backends?.close();
  await service?.stop();
});

const admin = (...args: string[]) => petrel(service.env, 'admin', ...args);

async function addByCommand(name: string, ...more: string[]): Promise<{ readonly token: string }> {
  const { code, out, log } = await admin('tokens', 'add', name, ...more);
  expect([code, log]).toEqual([0, '']);
  return { token: out.trim() };
}

/**
 * Runs a command inside this process, because this is much faster than starting a process. Returns the output of the
 * command.
 */
async function printed(work: () => Promise<void>): Promise<string> {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  try {
    await work();
    return write.mock.calls.map(([text]) => text).join('');
  } finally {
    write.mockRestore();
  }
}

const add = async (name: string) => ({ token: (await printed(() => addAdmin(backends, name, null))).trim() });

const names = async () => (await db.query('select name from admin_tokens order by 1')).rows;
const look = (by: { readonly token: string }, front = 0) =>
  service.app(by, 'GET', '/api/admin/reserved_usernames', undefined, front);

const calls = async (query = '') => resultOf(service.app(root, 'GET', `/api/admin/audit${query}`));
type Call = Record<'token' | 'action' | 'target' | 'address', string> & Record<'id' | 'at' | 'times', number>;
const changes = async (token: string): Promise<Call[]> =>
  (await calls('?limit=100')).items.filter((call: Call & { status?: number }) => call.token === token);

test('every front accepts a new administrator token, and refuses it after the revoke command has returned', async () => {
  const one = await addByCommand('ada');
  expect(isAdminToken(one.token)).toBe(true);
  for (const front of [0, 1]) expect((await look(one, front)).status).toBe(200);
  expect((await service.app(one, 'GET', '/api/me')).status).toBe(401);
  expect((await service.bot(one.token, 'getMe')).status).toBe(401);
  expect((await admin('tokens', 'add', 'ada')).log).toContain('a token ada already exists');
  let revoked = false;
  let after = 0;
  const trying = (async () => {
    while (after < 20) {
      const began = revoked;
      const { status } = await look(one, after % 2);
      if (began) {
        after++;
        // Tries further tokens from another address, because after several refusals the first address must wait.
        expect([401, 429]).toContain(status);
      }
    }
  })();
  expect((await admin('tokens', 'revoke', 'ada')).out).toContain('ada is revoked');
  revoked = true;
  await trying;
  expect(await admin('tokens', 'revoke', 'ada')).toMatchObject({ code: 1 });
  expect((await look(root)).status).toBe(200);
});

longTest(
  'an administrator token stops working when it expires, and the list then shows it as expired',
  async () => {
    const brief = await addByCommand('brief', '--days', '1');
    const forever = await add('forever');
    expect((await look(brief)).status).toBe(200);
    expect((await admin('tokens', 'list')).out).toMatch(
      /brief {2}added \S+ {2}expires .*\nforever .*does not expire/,
    );
    await db.query("update admin_tokens set expires_at = now() - interval '1 second' where name = 'brief'");
    expect((await look(brief)).status).toBe(401);
    expect((await look(forever)).status).toBe(200);
    const out = await printed(() => listAdmins(backends));
    expect(out).toMatch(/brief .*expired/);
    for (const { token } of [brief, forever]) expect(out).not.toContain(token.slice(-20));
  },
);

test.each([
  ['add Ada', () => addAdmin(backends, 'Ada', null), 'a name has up to 32 lower-case letters'],
  [
    'add ADMIN_TOKEN',
    () => addAdmin(backends, 'ADMIN_TOKEN', null),
    'a name has up to 32 lower-case letters',
  ],
  [
    'add a long name',
    () => addAdmin(backends, 'x'.repeat(33), null),
    'a name has up to 32 lower-case letters',
  ],
  ['add for 0 days', () => addAdmin(backends, 'zoe', 0), '--days must be a whole number'],
  ['revoke zoe', () => revokeAdmin(backends, 'zoe'), 'no token is named zoe'],
])('the command to %s is refused and changes nothing', async (_, work, text) => {
  const before = await names();
  await expect(printed(work)).rejects.toThrow(text);
  expect(await names()).toEqual(before);
});

longTest.each([
  [['tokens', 'add', 'zoe', '--days', '1.5'], '--days must be a whole number'],
  [['audit', '--limit', 'x'], '--limit must be a whole number'],
])('admin %j is refused and changes nothing', async (args, text) => {
  const before = await names();
  const ran = await admin(...args);
  expect([ran.code, ran.out]).toEqual([1, '']);
  expect(ran.log).toContain(text);
  expect(await names()).toEqual(before);
});

test('made-up administrator tokens are refused', async () => {
  const { token } = await add('real');
  const near = token.slice(0, -1) + (token.endsWith('0') ? '1' : '0');
  for (const wrong of [near, `${token}0`, token.slice(1), '', 'ADMIN_TOKEN'])
    expect((await look({ token: wrong })).status).toBe(401);
  const { rows } = await db.query("select fingerprint from admin_tokens where name = 'real'");
  expect(rows[0].fingerprint).toHaveLength(32);
});

test('the audit log shows the caller, action, target, result and address of each administrator call', async () => {
  const eve = await add('eve');
  const front = service.fronts[0].url;
  const call = async (method: 'POST' | 'DELETE', path: string, body?: object, from = '192.0.2.5') => {
    const answer = await request(`${front}/api/admin/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${eve.token}`,
        'content-type': 'application/json',
        'x-forwarded-for': from,
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    await answer.body.dump();
    return answer.statusCode;
  };
  expect(await call('POST', `users/${alice.id}/suspension`)).toBe(200);
  expect(await call('DELETE', `users/${alice.id}/suspension`, undefined, '2001:db8::7')).toBe(200);
  expect(await call('POST', 'reserved_usernames', { username: 'reserved_by_eve' })).toBe(200);
  expect(await call('POST', 'reserved_usernames', { username: eve.token })).toBe(400);
  expect(await call('POST', 'users/999999999/tokens')).toBe(404);
  expect(await call('DELETE', 'reserved_usernames/nobody%00')).toBeGreaterThanOrEqual(400);
  expect(await call('POST', 'users', { username: 'made_by_eve', first_name: 'Made' })).toBe(200);
  const shown = (await changes('eve')).reverse();
  const address = '192.0.2.5';
  expect(shown.map(({ id, at, ...rest }) => rest)).toEqual([
    {
      ...{ token: 'eve', action: 'POST /api/admin/users/{id}/suspension', target: `${alice.id}` },
      ...{ address, status: 200, times: 1 },
    },
    {
      ...{ token: 'eve', action: 'DELETE /api/admin/users/{id}/suspension', target: `${alice.id}` },
      ...{ address: '2001:db8::7', status: 200, times: 1 },
    },
    {
      ...{ token: 'eve', action: 'POST /api/admin/reserved_usernames', target: 'reserved_by_eve' },
      ...{ address, status: 200, times: 1 },
    },
    {
      ...{ token: 'eve', action: 'POST /api/admin/reserved_usernames', target: maskTokens(eve.token) },
      ...{ address, status: 400, times: 1 },
    },
    {
      ...{ token: 'eve', action: 'POST /api/admin/users/{id}/tokens', target: '999999999' },
      ...{ address, status: 404, times: 1 },
    },
    {
      ...{ token: 'eve', action: 'DELETE /api/admin/reserved_usernames/{username}', target: 'nobody' },
      ...{ address, status: expect.any(Number), times: 1 },
    },
    {
      ...{ token: 'eve', action: 'POST /api/admin/users', target: 'made_by_eve' },
      ...{ address, status: 200, times: 1 },
    },
  ]);
  // The audit log also lists the administrator commands that were run. It never contains a token.
  await expect(addAdmin(backends, 'eve', null)).rejects.toThrow('a token eve already exists');
  await expect(revokeAdmin(backends, 'nobody')).rejects.toThrow('no token is named nobody');
  const { out: log } = await admin('audit', '--limit', '1000');
  expect(await printed(() => listCalls(backends, 1_000))).toBe(log);
  expect(log).toMatch(/petrel admin tokens add {2}eve {2}200/);
  expect(log).toMatch(/petrel admin tokens add {2}eve {2}400/);
  expect(log).toMatch(/petrel admin tokens revoke {2}nobody {2}400/);
  expect(log).not.toMatch(/petrel admin .* end unknown/);
  expect(log).toContain(`eve  POST /api/admin/users  made_by_eve  200  ${address}  1x`);
  const { rows } = await db.query('select * from admin_calls');
  const all = JSON.stringify(rows) + log + service.fronts.map((one) => one.log()).join('');
  for (const { token } of [eve, root]) expect(all).not.toContain(token.slice(-20));
});

test('the service refuses an administrator call that changes something if the audit log cannot record the call', async () => {
  await db.query('alter table admin_calls rename to admin_calls_away');
  try {
    const answer = await service.app(root, 'POST', '/api/admin/reserved_usernames', {
      username: 'not_noted',
    });
    expect(answer.status).toBe(500);
    expect((await look(root)).status).toBe(200);
  } finally {
    await db.query('alter table admin_calls_away rename to admin_calls');
  }
  const { items } = await resultOf(look(root));
  expect(JSON.stringify(items)).not.toContain('not_noted');
});

test('repeated reads with one administrator token add one audit log entry per hour', async () => {
  const reader = await add('reader');
  for (let i = 0; i < 6; i++) expect((await look(reader, i % 2)).status).toBe(200);
  await expect.poll(async () => (await changes('reader')).reduce((sum, { times }) => sum + times, 0)).toBe(6);
  // If a new hour began during the test, the audit log has two entries.
  expect((await changes('reader')).length).toBeLessThanOrEqual(2);
});

test('a call from a forbidden address is refused and logged, even with a valid administrator token', async () => {
  const far = await add('far');
  const from = async (address: string, token = far.token) => {
    const answer = await request(`${service.fronts[1]?.url}/api/admin/reserved_usernames`, {
      headers: { authorization: `Bearer ${token}`, 'x-forwarded-for': address },
    });
    return [answer.statusCode, ((await answer.body.json()) as { description?: string }).description];
  };
  const refused = [403, 'Forbidden: administrators may not call from this address'];
  expect(await from('198.51.100.1')).toEqual(refused);
  expect(await from('198.51.100.1', root.token)).toEqual(refused);
  expect(await from('2001:db8::8')).toEqual(refused);
  expect(await from('192.0.2.5, 198.51.100.1')).toEqual(refused);
  expect(await from('198.51.100.1', 'made up')).toEqual([401, 'Unauthorized']);
  for (const address of ['192.0.2.5', '2001:db8::7', '127.0.0.9', '198.51.100.1, 192.0.2.5'])
    expect((await from(address))[0]).toBe(200);
  await expect
    .poll(async () => (await changes('far')).filter(({ address }) => address === '198.51.100.1'))
    .toMatchObject([{ status: 403, times: expect.any(Number) }]);
});

test('reading the audit log page by page returns each entry once', async () => {
  const whole = (await calls('?limit=100')).items.map(({ id }: Call) => id);
  expect(whole.length).toBeGreaterThan(10);
  const seen: number[] = [];
  let cursor = `${(whole[0] as number) + 1}`;
  do {
    const page = await calls(`?limit=3&cursor=${cursor}`);
    seen.push(...page.items.map(({ id }: Call) => id));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  expect(seen.slice(0, whole.length)).toEqual(whole);
  expect(new Set(seen).size).toBe(seen.length);
  expect((await service.app(alice, 'GET', '/api/admin/audit')).status).toBe(401);
});
