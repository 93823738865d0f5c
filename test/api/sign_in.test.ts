/** Signs in through a real OpenID Connect provider, and through providers that misbehave. */
import type { ServerResponse } from 'node:http';
import { generateKeyPair, SignJWT } from 'jose';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../src/config/config.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { createSecrets } from '../../src/store/core/secrets.js';
import { openEvents } from '../clients/event_source.js';
import { openAnywhere } from '../support/cluster.js';
import {
  beginSignIn,
  client,
  cookiesOf,
  finishSignIn,
  type Started,
  signInAs,
  startProvider,
  type TestProvider,
  visitProvider,
} from '../support/oidc.js';
import { createFront, type Front } from '../support/role_process.js';
import { type Answer, itemsOf, resultOf, type Service, startService } from '../support/service.js';
import { callOpenly } from '../support/sign_in_calls.js';

const baseUrl = 'http://petrel.example';
const firefox = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0';

let provider: TestProvider;
let service: Service;
let database: pg.Client;

beforeAll(async () => {
  provider = await startProvider(baseUrl);
  service = await startService({
    ...{ combined: true, fronts: 2 },
    extraEnv: { ...provider.settings, SIGN_UPS_PER_ADDRESS: '0', SIGN_INS_PER_ADDRESS: '0' },
  });
  database = new pg.Client(service.databaseUrl);
  await database.connect();
});
afterAll(async () => {
  await database?.end();
  await service?.stop();
  await provider?.close();
});
beforeEach(() => {
  provider.fault = null;
});

const sessions = (user: { readonly token: string }) => itemsOf(service.app(user, 'GET', '/api/me/sessions'));

/** Returns the rows that a refused sign-in must not change. */
async function kept(): Promise<unknown> {
  const { rows } = await database.query(`
    select (select count(*) from users) as users, (select count(*) from user_tokens) as tokens,
      (select count(*) from user_identities where user_id is not null) as identities`);
  return rows[0];
}

async function refused(status: number, text: string, call: () => Promise<Answer>): Promise<Answer> {
  const before = await kept();
  const answer = await call();
  expect(answer.body).toMatchObject({ ok: false, error_code: status, description: text });
  expect([answer.status, cookiesOf(answer)]).toEqual([status, []]);
  expect(await kept()).toEqual(before);
  return answer;
}

const expired = 'Bad Request: the sign-in has expired, begin again';
const unconfirmed = 'Forbidden: the identity provider did not confirm the sign-in';
const unavailable = 'Service Unavailable: the identity provider gave no valid answer';

describe('provider sign-in', () => {
  test('a sign-in through the provider creates the person once, and gives each browser its own session', async () => {
    expect(await resultOf(callOpenly(service, 'GET', '/api/sign_in'))).toEqual({
      ...{ sign_up: false, provider: { name: 'Example ID' } },
    });
    const { user, token } = await resultOf(signInAs(service, 'carol_one', 0, firefox));
    expect(user).toMatchObject({ first_name: 'CAROL_ONE', username: 'carol_one', language_code: 'ru' });
    const again = await resultOf(signInAs(service, 'carol_one', 1));
    expect(again.user).toEqual(user);
    expect(again.token).not.toBe(token);
    expect(
      (await sessions(again)).map(({ agent, is_current }: { agent: string; is_current?: true }) => [
        agent,
        is_current,
      ]),
    ).toEqual([
      ['', true],
      ['Firefox on Windows', undefined],
    ]);
    const { rows } = await database.query('select issuer, user_id from user_identities where subject = $1', [
      'carol_one',
    ]);
    expect(rows).toEqual([{ issuer: provider.issuer, user_id: String(user.id) }]);
  });

  test('a sign-in can begin on one front and finish on another front', async () => {
    const { url, cookie } = await beginSignIn(service, 0);
    const answer = await visitProvider(url, 'dave');
    expect((await finishSignIn(service, cookie, answer, 1)).status).toBe(200);
  });

  test('the sign-in URL of the provider contains PKCE, state, nonce and the exact redirect URI', async () => {
    const { body, ...answer } = await callOpenly(service, 'POST', '/api/sign_in/provider', {});
    const { origin, searchParams } = new URL(body.result.url);
    expect(origin).toBe(provider.issuer);
    expect(Object.fromEntries(searchParams)).toEqual({
      ...{ response_type: 'code', client_id: client.id, redirect_uri: `${baseUrl}/app` },
      ...{ scope: 'openid profile', code_challenge_method: 'S256' },
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    });
    const [cookie = ''] = [answer.headers['set-cookie'] ?? ''].flat();
    expect(cookie).toMatch(/^petrel-sign-in=[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/);
    expect(answer.headers['cache-control']).toBe('no-store');
    for (const secret of [searchParams.get('state'), searchParams.get('nonce')])
      expect(Buffer.from(cookie.split(/[=;]/)[1] ?? '', 'base64url').toString('latin1')).not.toContain(
        secret,
      );
  });

  test('a successful sign-in removes the cookie, and its authorization code and callback cannot be used a second time', async () => {
    const { url, cookie } = await beginSignIn(service);
    const answer = await visitProvider(url, 'erin');
    const first = await finishSignIn(service, cookie, answer);
    expect([first.status, cookiesOf(first)]).toEqual([200, ['petrel-sign-in=']]);
    await refused(403, unconfirmed, () => finishSignIn(service, cookie, answer));
    await refused(400, expired, () => finishSignIn(service, '', answer));
  });

  test('if a new person signs in several times simultaneously, only one account is created', async () => {
    const ready = await Promise.all(
      [0, 1, 0, 1].map(async (front) => {
        const { url, cookie } = await beginSignIn(service, front);
        return { front, cookie, answer: await visitProvider(url, 'frank') };
      }),
    );
    const made = await Promise.all(
      ready.map(({ front, cookie, answer }) => resultOf(finishSignIn(service, cookie, answer, front))),
    );
    expect(new Set(made.map(({ user }) => user.id)).size).toBe(1);
    expect(new Set(made.map(({ token }) => token)).size).toBe(4);
    const { rows } = await database.query(`select count(*) as n from users where first_name = 'FRANK'`);
    expect(Number(rows[0].n)).toBe(1);
  });

  test('a sign-in does not count as a sign-up if another sign-in has just created the person', async () => {
    const interval_us = 86_400_000;
    const redis = openAnywhere(service.redis);
    onTestFinished(async () => {
      await redis.quit();
    });
    const key = makeKeys(Number(service.env.PARTITIONS ?? 64)).rate(0, 'sign_ups');
    const fullAt = async () => Number(await redis.get(key));
    await resultOf(signInAs(service, 'first_of_all'));
    const before = await fullAt();
    // While this row is locked, no sign-in can find or create the person.
    await database.query('begin');
    await database.query('insert into user_identities (issuer, subject) values ($1, $2)', [
      ...[provider.issuer, 'grete'],
    ]);
    const both = [signInAs(service, 'grete', 0), signInAs(service, 'grete', 1)];
    const waiting = `select count(*)::int as n from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    await expect.poll(async () => (await database.query(waiting)).rows[0].n).toBe(2);
    await database.query('rollback');
    const [one, other] = await Promise.all(both.map(resultOf));
    expect(one.user.id).toBe(other.user.id);
    expect(await fullAt()).toBe(before + interval_us);
  });

  test('a new person gets no username if the username at the provider is already taken', async () => {
    const grace = await service.newUser('grace');
    const { user } = await resultOf(signInAs(service, grace.username));
    expect(user.id).not.toBe(grace.id);
    expect(user).toMatchObject({ first_name: grace.username.toUpperCase() });
    expect(user.username).toBeUndefined();
  });

  test('a suspended person gets no session', async () => {
    const { user } = await resultOf(signInAs(service, 'heidi'));
    const admin = { token: service.adminToken };
    await resultOf(service.app(admin, 'POST', `/api/admin/users/${user.id}/suspension`));
    await refused(403, 'Forbidden: the account is suspended', () => signInAs(service, 'heidi'));
    await resultOf(service.app(admin, 'DELETE', `/api/admin/users/${user.id}/suspension`));
    expect((await signInAs(service, 'heidi')).status).toBe(200);
  });

  test('an operator can link a subject of the provider to a person', async () => {
    const ivan = await service.newUser('ivan');
    const admin = { token: service.adminToken };
    const link = { external_subject: 'ivan-at-work' };
    await resultOf(service.app(admin, 'PUT', `/api/admin/users/${ivan.id}/identity`, link));
    expect((await resultOf(signInAs(service, 'ivan-at-work'))).user.id).toBe(ivan.id);
  });

  test('ending a session closes the event stream of this session on every front, and the other sessions stay valid', async () => {
    const first = await resultOf(signInAs(service, 'judy', 0));
    const second = await resultOf(signInAs(service, 'judy', 1));
    const ended = new Promise((resolve) => {
      void openEvents(service.fronts[1]?.url as string, second.token, { onEnd: resolve });
    });
    const { id } = (await sessions(second)).find((each: { is_current?: true }) => each.is_current);
    await resultOf(service.app(first, 'DELETE', `/api/me/sessions/${id}`, undefined, 0));
    for (const front of [0, 1]) {
      expect((await service.app(second, 'GET', '/api/me', undefined, front)).status).toBe(401);
      expect((await service.app(first, 'GET', '/api/me', undefined, front)).status).toBe(200);
    }
    await ended;
    const third = await resultOf(signInAs(service, 'judy', 1));
    expect(await resultOf(service.app(third, 'DELETE', '/api/me/sessions'))).toEqual({ ended: 1 });
    expect((await service.app(first, 'GET', '/api/me', undefined, 1)).status).toBe(401);
    await resultOf(service.app(third, 'DELETE', '/api/me/session'));
    expect((await service.app(third, 'GET', '/api/me', undefined, 0)).status).toBe(401);
  });
});

describe('a refused sign-in changes nothing', () => {
  const answerWith = (path: string, send: (response: ServerResponse) => void) => {
    provider.fault = ({ url }, response) => {
      const isMeant = url?.split('?')[0] === path;
      if (isMeant) send(response);
      return isMeant;
    };
  };
  const sendJson =
    (value: unknown, status = 200) =>
    (response: ServerResponse) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };
  const nonceOf = ({ url }: Started) => new URL(url).searchParams.get('nonce') as string;
  const soon = () => Math.floor(Date.now() / 1_000) + 600;

  /** Finishes a sign-in for which the provider returns this ID token. */
  async function finishWith(token: (started: Started) => Promise<string>): Promise<Answer> {
    const started = await beginSignIn(service);
    const answer = await visitProvider(started.url, 'mallory');
    const id_token = await token(started);
    answerWith('/token', sendJson({ access_token: 'a', token_type: 'Bearer', expires_in: 60, id_token }));
    return finishSignIn(service, started.cookie, answer);
  }

  test('if the state of a sign-in differs from the cookie, the sign-in is refused without a request to the provider', async () => {
    const [mine, other] = [await beginSignIn(service), await beginSignIn(service)];
    const answer = await visitProvider(mine.url, 'mallory');
    const before = provider.requested.length;
    const changed = answer.replace(/state=(.)/, (_, first) => `state=${first === 'A' ? 'B' : 'A'}`);
    expect(changed).not.toBe(answer);
    await refused(400, expired, () => finishSignIn(service, other.cookie, answer));
    await refused(400, expired, () => finishSignIn(service, mine.cookie, changed));
    await refused(400, expired, () => finishSignIn(service, mine.cookie, 'code=1'));
    for (const cookie of [
      `${mine.cookie.slice(0, -4)}AAAA`,
      'petrel-sign-in=AAAA',
      `petrel-sign-in=${'A'.repeat(4_000)}`,
    ])
      await refused(400, expired, () => finishSignIn(service, cookie, answer));
    expect(provider.requested.length).toBe(before);
    expect((await finishSignIn(service, mine.cookie, answer)).status).toBe(200);
  });

  test('a sign-in is refused if it takes more than ten minutes, or if its cookie is from another installation', async () => {
    const { url, cookie } = await beginSignIn(service);
    const answer = await visitProvider(url, 'mallory');
    const { TOKEN_PEPPER = [], TOKEN_KEYS = [] } = readConfig(service.env);
    const owner = 'installation:sign-in';
    const secrets = createSecrets(TOKEN_PEPPER, TOKEN_KEYS);
    const flow = JSON.parse(secrets.open(Buffer.from(cookie.split('=')[1] ?? '', 'base64url'), owner));
    expect(flow.until).toBeGreaterThan(Date.now() + 9 * 60_000);
    const strange = createSecrets(TOKEN_PEPPER, [{ id: TOKEN_KEYS[0]?.id ?? '', key: Buffer.alloc(32) }]);
    const late = secrets.seal(JSON.stringify({ ...flow, until: Date.now() - 60_000 }), owner);
    for (const record of [late, strange.seal(JSON.stringify(flow), owner)])
      await refused(400, expired, () =>
        finishSignIn(service, `petrel-sign-in=${record.toString('base64url')}`, answer),
      );
  });

  test('the code of another sign-in is refused, because the PKCE verifier differs', async () => {
    const [mine, other] = [await beginSignIn(service), await beginSignIn(service)];
    const stolen = new URLSearchParams(await visitProvider(other.url, 'victim'));
    stolen.set('state', new URL(mine.url).searchParams.get('state') as string);
    await refused(403, unconfirmed, () => finishSignIn(service, mine.cookie, stolen.toString()));
  });

  test('to prevent mix-up attacks, a sign-in is refused if the callback names another provider or no provider', async () => {
    const { url, cookie } = await beginSignIn(service);
    const answer = new URLSearchParams(await visitProvider(url, 'mallory'));
    const before = provider.requested.length;
    for (const iss of ['https://other.example', '']) {
      answer.set('iss', iss);
      await refused(403, unconfirmed, () => finishSignIn(service, cookie, answer.toString()));
    }
    answer.delete('iss');
    await refused(403, unconfirmed, () => finishSignIn(service, cookie, answer.toString()));
    expect(provider.requested.length).toBe(before);
  });

  test('a sign-in is refused if the person cancels it at the provider', async () => {
    const { url, cookie } = await beginSignIn(service);
    const state = new URL(url).searchParams.get('state') as string;
    const answer = new URLSearchParams({ error: 'access_denied', state, iss: provider.issuer });
    await refused(403, unconfirmed, () => finishSignIn(service, cookie, answer.toString()));
  });

  test.each<[string, (started: Started) => Promise<string>]>([
    ['another nonce', () => provider.sign({ sub: 'm', nonce: 'other', exp: soon() })],
    ['another audience', (s) => provider.sign({ sub: 'm', nonce: nonceOf(s), exp: soon(), aud: 'other' })],
    [
      'another issuer',
      (s) => provider.sign({ sub: 'm', nonce: nonceOf(s), exp: soon(), iss: 'https://o.example' }),
    ],
    ['a blank subject', (s) => provider.sign({ sub: ' ', nonce: nonceOf(s), exp: soon() })],
    ['a long subject', (s) => provider.sign({ sub: 'm'.repeat(256), nonce: nonceOf(s), exp: soon() })],
    ['an end a minute ago', (s) => provider.sign({ sub: 'm', nonce: nonceOf(s), exp: soon() - 660 })],
    [
      'the signature of a stranger',
      async (s) => {
        const { privateKey } = await generateKeyPair('RS256');
        const claims = { iss: provider.issuer, aud: client.id, sub: 'm', nonce: nonceOf(s), exp: soon() };
        const header = { alg: 'RS256', kid: 'one' };
        return new SignJWT(claims).setProtectedHeader(header).setIssuedAt().sign(privateKey);
      },
    ],
  ])('a sign-in is refused if the ID token has %s', async (_, token) => {
    await refused(403, unconfirmed, () => finishWith(token));
  });

  test('a sign-in is refused if the ID token has no nonce, or if `userinfo` fails for a new person', async () => {
    await refused(503, unavailable, () => finishWith(() => provider.sign({ sub: 'm', exp: soon() })));
    provider.fault = null;
    const unnamed = (s: Started) => provider.sign({ sub: 'm', nonce: nonceOf(s), exp: soon() });
    await refused(503, unavailable, () => finishWith(unnamed));
  });

  test('the clocks of Petrel and the provider may differ by some seconds', async () => {
    const skewed = (s: Started) =>
      provider.sign({ sub: 'late', name: 'Late', nonce: nonceOf(s), exp: soon() - 603 });
    expect((await finishWith(skewed)).status).toBe(200);
  });

  test.each<[string, (response: ServerResponse) => void]>([
    ['closes the connection', (response) => response.destroy()],
    ['answers 500', sendJson({ error: 'server_error' }, 500)],
    ['does not know our client', sendJson({ error: 'invalid_client' }, 401)],
    ['answers with text', (response) => response.end('hello')],
    ['answers without an ID token', sendJson({ access_token: 'a', token_type: 'Bearer' })],
    ['answers with more than 256 KiB', sendJson({ access_token: 'a'.repeat(300_000), token_type: 'Bearer' })],
    [
      'redirects the request',
      (response) => response.writeHead(307, { location: `${provider.issuer}/elsewhere` }).end(),
    ],
  ])('a sign-in is refused if the provider %s', async (_, send) => {
    const { url, cookie } = await beginSignIn(service);
    const answer = await visitProvider(url, 'nina');
    answerWith('/token', send);
    await refused(503, unavailable, () => finishSignIn(service, cookie, answer));
    expect(provider.requested).not.toContain('/elsewhere');
    provider.fault = null;
    expect((await signInAs(service, 'nina')).status).toBe(200);
  });
});

describe('with other settings', () => {
  const fronts: Front[] = [];
  afterAll(() => Promise.all(fronts.map((front) => front.stop())));

  /** Starts one more front of the installation. */
  async function startFront(env: Readonly<Record<string, string>>): Promise<Service> {
    const front = await createFront(service.env, env);
    fronts.push(front);
    await front.start();
    return { ...service, fronts: [front] };
  }

  test('a front starts while the provider is down, and signs people in later', async () => {
    const json = { 'content-type': 'application/json' };
    const huge = JSON.stringify({ issuer: provider.issuer, x: 'x'.repeat(300_000) });
    const wrong = JSON.stringify({ issuer: 'https://other.example', jwks_uri: 'https://other.example/k' });
    const faults: Array<(response: ServerResponse) => void> = [
      (response) => response.destroy(),
      (response) => response.writeHead(200, json).end(huge),
      (response) => response.writeHead(200, json).end(wrong),
    ];
    const begin = (other: Service) => callOpenly(other, 'POST', '/api/sign_in/provider', {});
    for (const send of faults) {
      provider.fault = (_, response) => {
        send(response);
        return true;
      };
      const other = await startFront({});
      await refused(503, unavailable, () => begin(other));
      provider.fault = null;
      await expect.poll(async () => (await begin(other)).status).toBe(200);
    }
  });

  test('an unknown subject is refused if only operators may create people', async () => {
    const other = await startFront({ OIDC_CREATE_USERS: '0' });
    await refused(403, 'Forbidden: there is no account for this person', () => signInAs(other, 'oscar'));
    const { user } = await resultOf(signInAs(service, 'oscar'));
    expect((await resultOf(signInAs(other, 'oscar'))).user.id).toBe(user.id);
  });

  test('a first sign-in counts against the limit of sign-ups, and the number of sign-ins per address is limited', async () => {
    const other = await startFront({ SIGN_UPS_PER_ADDRESS: '1/86400', SIGN_INS_PER_ADDRESS: '5/86400' });
    await resultOf(signInAs(other, 'peggy'));
    const { cookie, url } = await beginSignIn(other);
    const answer = await visitProvider(url, 'quentin');
    const before = await kept();
    expect((await finishSignIn(other, cookie, answer)).status).toBe(429);
    expect(await kept()).toEqual(before);
    await beginSignIn(other);
    expect((await callOpenly(other, 'POST', '/api/sign_in/provider', {})).status).toBe(429);
  });

  test('the sign-in cookie has the __Host- prefix if BASE_URL uses HTTPS', async () => {
    const other = await startFront({ BASE_URL: 'https://petrel.example' });
    const answer = await callOpenly(other, 'POST', '/api/sign_in/provider', {});
    expect([answer.headers['set-cookie'] ?? ''].flat()[0]).toMatch(
      /^__Host-petrel-sign-in=[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
    );
    const { searchParams } = new URL(answer.body.result.url);
    expect(searchParams.get('redirect_uri')).toBe('https://petrel.example/app');
  });

  test('names are read from `userinfo` if the ID token contains no names', async () => {
    const plain = await startProvider(baseUrl, { namesInToken: false });
    try {
      const other = await startFront(plain.settings);
      const { user } = await resultOf(signInAs(other, 'rupert'));
      expect(user).toMatchObject({ first_name: 'RUPERT', username: 'rupert' });
      expect(plain.requested).toContain('/me');
      // A person is identified by issuer and subject, so the same subject of another issuer gets another account.
      expect((await resultOf(signInAs(service, 'rupert'))).user.id).not.toBe(user.id);
    } finally {
      await plain.close();
    }
  });
});
