import { createPublicKey } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { limits } from '../../src/limits.js';
import { eventually } from '../clients/event_source.js';
import { makeCertificate } from '../support/certificates.js';
import { createRole, type RoleProcess } from '../support/role_process.js';
import { temporaryFolder } from '../support/servers.js';
import { type Answer, resultOf, type Service, startService } from '../support/service.js';

const makeKey = async (kid: string, alg = 'RS256') => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
};
type Key = Awaited<ReturnType<typeof makeKey>>;

const [issuer, audience] = ['https://id.example/', 'petrel-of-test'];
const folder = temporaryFolder();
let provider: Server;
let published: readonly Key[];
let reads = 0;
let service: Service;
/** A front that creates a person for each unknown subject of the identity provider. */
let open: RoleProcess;
let openPort: number;
let [rsa, elliptic, edwards] = [] as unknown as [Key, Key, Key];

beforeAll(async () => {
  [rsa, elliptic, edwards] = [
    await makeKey('one'),
    await makeKey('two', 'ES256'),
    await makeKey('three', 'EdDSA'),
  ];
  published = [rsa, elliptic, edwards];
  const certificate = makeCertificate({ addresses: ['127.0.0.1'] });
  provider = createServer(certificate, (_, response) => {
    reads++;
    response.end(JSON.stringify({ keys: published.map(({ jwk }) => jwk) }));
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  await writeFile(join(folder, 'authority.pem'), certificate.cert);
  service = await startService({
    combined: true,
    extraEnv: {
      JWT_JWKS_URL: `https://127.0.0.1:${(provider.address() as AddressInfo).port}/keys`,
      JWT_ISSUER: issuer,
      JWT_AUDIENCE: audience,
      NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem'),
    },
  });
  openPort = await freePort();
  const env = { ...service.env, JWT_CREATE_USERS: '1', PORT: String(openPort) };
  open = createRole('front', async () => env);
  await open.start();
});
afterAll(async () => {
  await open?.stop();
  await service?.stop();
  provider?.close();
  await rm(folder, { recursive: true, force: true });
});

const seconds = () => Math.floor(Date.now() / 1_000);
const claimsOf = (sub: string, more: JWTPayload = {}): JWTPayload => ({
  ...{ sub, iss: issuer, aud: audience, exp: seconds() + 600 },
  ...more,
});
const sign = (claims: JWTPayload, key: Key = rsa, header = {}) =>
  new SignJWT(claims).setProtectedHeader({ alg: key.alg, kid: key.kid, ...header }).sign(key.privateKey);

const me = (token: string) => service.app({ token }, 'GET', '/api/me');
const onOpen = async (token: string, path = '/api/me'): Promise<Answer> => {
  const answer = await request(`http://127.0.0.1:${openPort}${path}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return { status: answer.statusCode, headers: answer.headers, body: await answer.body.json() };
};
const operator = (verb: string, path: string, body?: object) =>
  service.app({ token: service.adminToken }, verb, path, body);

let people = 0;
async function known(subject: string) {
  const given = { username: `known_${++people}`, first_name: 'Ann', external_subject: subject };
  return resultOf(operator('POST', '/api/admin/users', given));
}

const refused = { ok: false, error_code: 401, description: 'Unauthorized' };

test("a token of the identity provider authenticates the person to whom the token's subject is mapped", async () => {
  const { user, token } = await known('sub|ann');
  for (const key of [rsa, elliptic, edwards])
    for (const aud of [audience, ['other', audience]]) {
      const jwt = await sign(claimsOf('sub|ann', { aud }), key);
      expect((await resultOf(me(jwt))).id).toBe(user.id);
      expect((await resultOf(onOpen(jwt))).id).toBe(user.id);
    }
  expect((await resultOf(me(token))).id).toBe(user.id);
  const bot = await resultOf(
    service.app({ token: await sign(claimsOf('sub|ann')) }, 'POST', '/api/me/bots', {
      username: 'by_jwt_bot',
      name: 'x',
    }),
  );
  expect((await resultOf(service.bot(bot, 'getMe'))).id).toBe(bot.id);
});

test("made-up key ids cause no further fetches of the identity provider's keys", async () => {
  const { user } = await known('sub|dan');
  const before = reads;
  const next = await makeKey('next');
  published = [next];
  expect((await resultOf(me(await sign(claimsOf('sub|dan'), next)))).id).toBe(user.id);
  expect(reads).toBe(before + 1);
  expect((await me(await sign(claimsOf('sub|dan'), rsa))).body).toEqual(refused);
  const madeUp = await makeKey('made up');
  const calls = Array.from({ length: 20 }, async (_, i) =>
    me(await sign(claimsOf('sub|dan'), { ...madeUp, kid: `made up ${i}` })),
  );
  for (const answer of await Promise.all(calls)) expect(answer.body).toEqual(refused);
  expect(reads).toBe(before + 1);
  rsa = next;
});

describe('invalid tokens of the identity provider are refused', () => {
  const claims = () => claimsOf('sub|bea');
  const without = (name: string) => {
    const { [name]: _, ...rest } = claims();
    return rest;
  };
  const pem = () =>
    createPublicKey({ key: rsa.jwk as never, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  const hmac = (secret: string, kid: string) =>
    new SignJWT(claims()).setProtectedHeader({ alg: 'HS256', kid }).sign(Buffer.from(secret));
  const tampered = async () => {
    const [head, , signature] = (await sign(claimsOf('sub|nobody'))).split('.');
    return [head, Buffer.from(JSON.stringify(claims())).toString('base64url'), signature].join('.');
  };
  beforeAll(async () => {
    await known('sub|bea');
    expect((await me(await sign(claims()))).status).toBe(200);
  });
  test.each<[string, () => Promise<string> | string]>([
    ['alg none', () => new UnsecuredJWT(claims()).encode()],
    [
      'alg none with the signature of another token',
      async () => `${new UnsecuredJWT(claims()).encode()}${(await sign(claims())).split('.')[2]}`,
    ],
    ['HS256 with the public key as its secret', () => hmac(pem().toString(), rsa.kid)],
    ['HS256 with the published key as its secret', () => hmac(JSON.stringify(rsa.jwk), rsa.kid)],
    ['an algorithm that does not match the key', () => sign(claims(), { ...elliptic, kid: rsa.kid })],
    ['another key with the same key id', async () => sign(claims(), await makeKey(rsa.kid))],
    ['claims that differ from the signed ones', tampered],
    ['another audience', () => sign(claimsOf('sub|bea', { aud: 'elsewhere' }))],
    ['no audience', () => sign(without('aud'))],
    ['another issuer', () => sign(claimsOf('sub|bea', { iss: 'https://id.example' }))],
    ['no issuer', () => sign(without('iss'))],
    ['no end', () => sign(without('exp'))],
    [
      'an expiry in the past',
      () => sign(claimsOf('sub|bea', { exp: seconds() - limits.jwt_leeway_ms / 1_000 - 1 })),
    ],
    ['a start of validity in the future', () => sign(claimsOf('sub|bea', { nbf: seconds() + 60 }))],
    ['no subject', () => sign(without('sub'))],
    ['a subject that nobody has', () => sign(claimsOf('sub|nobody'))],
    ['a blank subject', () => sign(claimsOf(' '))],
    ['a subject that is too long', () => sign(claimsOf('x'.repeat(256)))],
    ['an unknown critical header', () => sign(claims(), rsa, { crit: ['x'], x: 1 }).catch(() => 'a.b.c')],
    ['a text with dots', () => 'a.b.c'],
    ['only dots', () => '..'],
    [
      'a token that is too long',
      async () => sign(claimsOf('sub|bea', { filler: 'x'.repeat(limits.jwt_length_max) })),
    ],
  ])('an invalid token of the identity provider is refused with 401: %s', async (_, make) => {
    const token = await make();
    expect((await me(token)).body).toEqual(refused);
    expect((await service.app({ token }, 'POST', '/api/me/tokens', { name: 'x' })).body).toEqual(refused);
  });

  test('a valid token of the identity provider is accepted neither as operator token nor as bot token', async () => {
    const token = await sign(claims());
    expect((await service.app({ token }, 'POST', '/api/admin/users', {})).body).toEqual(refused);
    expect((await service.bot(token, 'getMe')).body).toEqual(refused);
  });

  test('the service tolerates a clock difference of a few seconds to the identity provider', async () => {
    expect((await me(await sign(claimsOf('sub|bea', { exp: seconds() - 3 })))).status).toBe(200);
    expect((await me(await sign(claimsOf('sub|bea', { nbf: seconds() + 5 })))).status).toBe(200);
  });
});

test('when a token of the identity provider expires, the event streams that it opened end and further calls are refused', async () => {
  await known('sub|cay');
  const ending = await sign(claimsOf('sub|cay', { exp: seconds() - limits.jwt_leeway_ms / 1_000 + 3 }));
  const stream = await request(`${service.fronts[0].url}/api/stream`, {
    headers: { authorization: `Bearer ${ending}` },
  });
  expect(stream.statusCode).toBe(200);
  let over = false;
  const end = () => {
    over = true;
  };
  stream.body.on('end', end).on('error', end).resume();
  expect((await me(ending)).status).toBe(200);
  await eventually(async () => expect((await me(ending)).body).toEqual(refused));
  await eventually(() => expect(over).toBe(true));
});

test('operators map and unmap subjects of the identity provider, and each change takes effect on every node immediately', async () => {
  const { user } = await known('sub|eve');
  const other = await service.newUser('fay');
  const [old, jwt] = [await sign(claimsOf('sub|eve')), await sign(claimsOf('sub|new'))];
  const path = `/api/admin/users/${user.id}/identity`;
  const both = async (token: string) => [(await me(token)).status, (await onOpen(token)).status];
  expect(await both(old)).toEqual([200, 200]);
  expect((await me(jwt)).status).toBe(401);
  expect(await resultOf(operator('PUT', path, { external_subject: 'sub|new' }))).toBe(true);
  expect((await me(old)).status).toBe(401);
  expect(await both(jwt)).toEqual([200, 200]);
  const text = async (answer: Promise<Answer>) => (await answer).body.description;
  const taken = 'Bad Request: external subject is already taken';
  expect(
    await text(operator('PUT', `/api/admin/users/${other.id}/identity`, { external_subject: 'sub|new' })),
  ).toBe(taken);
  const made = { username: 'never_made', first_name: 'x', external_subject: 'sub|new' };
  expect(await text(operator('POST', '/api/admin/users', made))).toBe(taken);
  expect(await text(operator('PUT', path, { external_subject: '  ' }))).toBe(
    'Bad Request: external subject is invalid',
  );
  expect(await text(operator('PUT', path, {}))).toBe('Bad Request: parameter "external_subject" is required');
  const unknown = 'Not Found: user not found';
  for (const verb of ['PUT', 'DELETE'])
    expect(await text(operator(verb, '/api/admin/users/1/identity', { external_subject: 'x' }))).toBe(
      unknown,
    );
  await resultOf(operator('POST', '/api/admin/users', { ...made, external_subject: 'sub|made' }));
  expect(await resultOf(operator('DELETE', path))).toBe(true);
  expect((await me(jwt)).status).toBe(401);
  await resultOf(operator('PUT', `/api/admin/users/${other.id}/identity`, { external_subject: 'sub|new' }));
  expect((await resultOf(me(jwt))).id).toBe(other.id);
});

test('with JWT_CREATE_USERS, an unknown subject becomes a person exactly once', async () => {
  const more = { preferred_username: 'gil_of_id', given_name: 'Gil', family_name: 'Ida', locale: 'ru-RU' };
  const jwt = await sign(claimsOf('sub|gil', more));
  expect((await me(jwt)).body).toEqual(refused);
  const all = await Promise.all(
    Array.from({ length: 4 }, async (_, i) =>
      onOpen(await sign(claimsOf('sub|gil', { ...more, jti: `${i}` }))),
    ),
  );
  expect(all.map(({ body }) => body.description)).toEqual(Array(4).fill(undefined));
  const [first] = all.map(({ body }) => body.result);
  expect(first).toMatchObject({
    first_name: 'Gil',
    last_name: 'Ida',
    username: 'gil_of_id',
    language_code: 'ru',
  });
  expect(all.map(({ body }) => body.result.id)).toEqual(Array(4).fill(first.id));
  expect((await resultOf(me(jwt))).id).toBe(first.id);
  // The next two people get no username. The first person's username is already taken, and the second person's token
  // contains no names.
  const second = await resultOf(onOpen(await sign(claimsOf('sub|hal', { preferred_username: 'gil_of_id' }))));
  expect(second).toMatchObject({ first_name: 'gil_of_id' });
  expect(second.username).toBeUndefined();
  expect(await resultOf(onOpen(await sign(claimsOf('42'))))).toMatchObject({ first_name: '42' });
});

test('after a person is deleted, their subject at the identity provider gets a new account only if JWT_CREATE_USERS is set', async () => {
  const { user } = await known('sub|ida');
  const jwt = await sign(claimsOf('sub|ida'));
  expect((await resultOf(onOpen(jwt))).id).toBe(user.id);
  expect(await resultOf(service.app({ token: jwt }, 'DELETE', '/api/me', { confirm: true }))).toBe(true);
  expect((await me(jwt)).body).toEqual(refused);
  const anew = await resultOf(onOpen(jwt));
  expect(anew.id).not.toBe(user.id);
  expect((await resultOf(me(jwt))).id).toBe(anew.id);
});
