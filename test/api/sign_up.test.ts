import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resultOf, type Service, startService } from '../support/service.js';
import { callOpenly, type OpenCall } from '../support/sign_in_calls.js';

const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

let service: Service;
let database: pg.Client;

beforeAll(async () => {
  service = await startService({
    ...{ combined: true, fronts: 2 },
    extraEnv: {
      ...{ SIGN_UP: 'open', SIGN_UPS_PER_ADDRESS: '3/86400', SIGN_UPS_TOTAL: '8/86400' },
      TRUSTED_PROXIES: '127.0.0.1/32',
    },
  });
  database = new pg.Client(service.databaseUrl);
  await database.connect();
});
afterAll(async () => {
  await database?.end();
  await service?.stop();
});

const countPeople = async (): Promise<number> =>
  Number((await database.query('select count(*) as n from users')).rows[0].n);

const from = (address: string, call: OpenCall = {}): OpenCall => ({
  ...call,
  headers: { 'x-forwarded-for': address, 'user-agent': firefox, ...call.headers },
});

const signUp = (username: string, call: OpenCall, first_name = 'Ann') =>
  callOpenly(service, 'POST', '/api/sign_up', { first_name, username }, call);

async function refused(status: number, text: string, call: () => ReturnType<typeof callOpenly>) {
  const before = await countPeople();
  const answer = await call();
  expect(answer.body).toMatchObject({ ok: false, error_code: status, description: text });
  expect(answer.status).toBe(status);
  expect(await countPeople()).toBe(before);
}

describe('with SIGN_UP=open', () => {
  test('anyone can create an account, and the session of the new account works on every front', async () => {
    expect(await resultOf(callOpenly(service, 'GET', '/api/sign_in'))).toEqual({ sign_up: true });
    const { user, token } = await resultOf(signUp('Ann_First', from('192.0.2.1'), '  Ann  '));
    expect(user).toMatchObject({ first_name: 'Ann', username: 'Ann_First', is_bot: false });
    for (const front of [0, 1])
      expect(await resultOf(service.app({ token }, 'GET', '/api/me', undefined, front))).toEqual(user);
    const { items } = await resultOf(service.app({ token }, 'GET', '/api/me/sessions', undefined, 1));
    expect(items).toMatchObject([{ agent: 'Firefox on Linux', is_current: true }]);
    expect(await resultOf(service.app({ token }, 'GET', '/api/me/tokens'))).toEqual({ items: [] });
  });

  test.each([
    ['a taken username', { first_name: 'Ann', username: 'ann_first' }, 'username is already taken'],
    ['a short username', { first_name: 'Ann', username: 'a' }, 'username is invalid'],
    ['a blank name', { first_name: '  ', username: 'ann_other' }, 'name is invalid'],
    ['a long name', { first_name: 'n'.repeat(65), username: 'ann_other' }, 'name is invalid'],
  ])('a sign-up with %s is refused and changes nothing', async (_, body, text) => {
    await refused(400, `Bad Request: ${text}`, () =>
      callOpenly(service, 'POST', '/api/sign_up', body, from('192.0.2.2')),
    );
  });

  test('refused sign-ups do not count against the total limit of sign-ups', async () => {
    for (let i = 0; i < 12; i++)
      await refused(400, 'Bad Request: username is already taken', () =>
        signUp('ann_first', from(`192.0.2.${20 + i}`, { front: i % 2 })),
      );
    expect((await signUp('after_refusals', from('192.0.2.40'))).status).toBe(200);
  });

  test('a sign-up is refused if its content type is one that other origins can send without a CORS preflight', async () => {
    const body = JSON.stringify({ first_name: 'Ann', username: 'ann_other' });
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'text/plain;application/json'])
      await refused(400, 'Bad Request', () =>
        callOpenly(service, 'POST', '/api/sign_up', undefined, {
          ...from('192.0.2.3', { headers: { 'content-type': type } }),
          raw: body,
        }),
      );
  });

  test('a sign-up ignores its idempotency key, so that no answer with a token is stored', async () => {
    const keyed = from('192.0.2.9', { headers: { 'idempotency-key': 'one' } });
    await resultOf(signUp('keyed_one', keyed));
    await refused(400, 'Bad Request: username is already taken', () => signUp('keyed_one', keyed));
  });

  test('all fronts share the limit of sign-ups per address and the total limit of sign-ups', async () => {
    for (const [i, front] of [0, 1, 0].entries())
      await resultOf(signUp(`flood_${i}`, from('192.0.2.4', { front })));
    const limited = (answer: { readonly status: number; readonly body: unknown }) => {
      expect(answer.status).toBe(429);
      expect(answer.body).toMatchObject({ parameters: { retry_after: expect.any(Number) } });
    };
    const before = await countPeople();
    for (const front of [0, 1]) limited(await signUp('flood_more', from('192.0.2.4', { front })));
    // All addresses of one IPv6 network count as one address.
    let made = 0;
    for (let i = 0; made < 3; i++) {
      const answer = await signUp(`six_${i}`, from(`2001:db8::${i + 1}`, { front: i % 2 }));
      if (answer.status !== 200) break;
      made++;
    }
    let total = 0;
    for (let i = 0; i < 9; i++)
      total += Number((await signUp(`total_${i}`, from(`198.51.100.${i}`))).status === 200);
    expect(total).toBeLessThan(9);
    limited(await signUp('total_more', from('203.0.113.7')));
    expect(await countPeople()).toBe(before + made + total);
  });
});

test('sign-up is closed by default, and the refusal changes nothing', async () => {
  const closed = await startService({ combined: true });
  try {
    expect(await resultOf(callOpenly(closed, 'GET', '/api/sign_in'))).toEqual({ sign_up: false });
    const answer = await callOpenly(closed, 'POST', '/api/sign_up', { first_name: 'Ann', username: 'ann_x' });
    expect(answer.body).toEqual({ ok: false, error_code: 403, description: 'Forbidden: sign-up is closed' });
    for (const path of ['/api/sign_in/provider', '/api/sign_in/session'])
      expect((await callOpenly(closed, 'POST', path, { answer: 'code=1&state=1' })).body).toEqual({
        ...{ ok: false, error_code: 400, description: 'Bad Request: no identity provider is set' },
      });
    const ann = await closed.newUser('ann');
    expect((await closed.app(ann, 'GET', '/api/names/ann_x')).status).toBe(400);
  } finally {
    await closed.stop();
  }
});
