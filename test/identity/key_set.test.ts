import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, type JWTVerifyGetKey, SignJWT } from 'jose';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { createKeySet } from '../../src/identity/key_set.js';
import { createVerifier } from '../../src/identity/verify.js';
import { limits } from '../../src/limits.js';
import { VirtualTime } from '../support/virtual_time.js';

const folder = await mkdtemp(join(tmpdir(), 'petrel-keys-'));
afterAll(() => rm(folder, { recursive: true, force: true }));
const file = join(folder, 'keys.json');

const makeKey = async (kid: string) => {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256' } };
};
type Key = Awaited<ReturnType<typeof makeKey>>;
const [first, second, third] = [await makeKey('first'), await makeKey('second'), await makeKey('third')];
const publish = (...keys: readonly Key[]) =>
  writeFile(file, JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }));

const [issuer, audience] = ['https://id.example', 'petrel'];
const tokenOf = ({ kid, privateKey }: Key) =>
  new SignJWT({})
    .setProtectedHeader({ alg: 'ES256', kid })
    .setSubject('ann')
    .setIssuer(issuer)
    .setAudience(audience)
    .setExpirationTime('1h')
    .sign(privateKey);

let time: VirtualTime;
let failures: unknown[];
let keys: JWTVerifyGetKey;

beforeEach(async () => {
  time = new VirtualTime();
  failures = [];
  keys = createKeySet({ source: { file }, time, onError: (error) => failures.push(error) });
  await publish(first);
});

const valid = async (key: Key) =>
  (await createVerifier({ keys, issuer, audience, subjectClaim: 'sub' })(await tokenOf(key))) !== null;
const answer = (key: Key) => valid(key).catch((error: Error) => error.message);
const away = `Service Unavailable: retry after ${limits.jwks_cooldown_ms / 1_000}`;

test('an unknown key id causes another read of the keys, at most once per cooldown', async () => {
  expect(await valid(first)).toBe(true);
  await publish(second);
  expect(await valid(second)).toBe(true);
  expect(await valid(first)).toBe(false);
  await publish(third);
  await time.advance(limits.jwks_cooldown_ms - 1);
  expect(await valid(third)).toBe(false);
  expect(await valid(second)).toBe(true);
  await time.advance(1);
  expect(await valid(third)).toBe(true);
  expect(failures).toEqual([]);
});

test('a removed key becomes invalid at the next read of the keys', async () => {
  expect(await valid(first)).toBe(true);
  await publish(second);
  await time.advance(limits.jwks_refresh_ms);
  expect(await valid(first)).toBe(true);
  await time.advance(1);
  // The first call after the refresh interval does not wait for the new keys.
  await expect.poll(() => valid(first)).toBe(false);
  expect(await valid(second)).toBe(true);
});

test('if the keys cannot be read, the old keys stay valid for a day', async () => {
  expect(await valid(first)).toBe(true);
  await writeFile(file, 'no keys');
  await time.advance(limits.jwks_age_ms_max);
  expect(await answer(first)).toBe(true);
  await expect.poll(() => failures.length).toBe(1);
  await time.advance(1);
  expect(await answer(first)).toBe(away);
  await publish(first);
  expect(await answer(first)).toBe(away);
  await time.advance(limits.jwks_cooldown_ms);
  expect(await answer(first)).toBe(true);
});

test('while no keys are known, callers are asked to retry', async () => {
  await rm(file);
  for (const _ of [1, 2, 3]) expect(await answer(first)).toBe(away);
  expect(failures).toHaveLength(1);
  await publish(first);
  await time.advance(limits.jwks_cooldown_ms);
  expect(await answer(first)).toBe(true);
});
