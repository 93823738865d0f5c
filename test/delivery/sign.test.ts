import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { makeSigner } from '../../src/delivery/outbound/sign.js';
import { systemRandom } from '../../src/random.js';
import { makeSigningSecret } from '../../src/store/core/secrets.js';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const former = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';
const body = Buffer.from('{"update_id":7,"message":{"text":"пример ✓"}}');
const update = { botId: '42', updateId: 7, body, nowS: 1_700_000_000 };
const named = { service: 'Service' };
const nowS = () => Math.floor(Date.now() / 1_000);

test('a signed request has the expected headers, with and without a secret token', () => {
  expect(makeSigner({ secret }, named)(update)).toEqual({
    'Content-Type': 'application/json',
    'X-Service-Signature': createHmac('sha256', secret).update(body).digest('hex'),
    'webhook-id': '42-7',
    'webhook-timestamp': '1700000000',
    'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
  });
  expect(makeSigner({ secret, secretToken: 'tok-en_1' }, { service: 'Petrel' })(update)).toEqual({
    'Content-Type': 'application/json',
    'X-Petrel-Bot-Api-Secret-Token': 'tok-en_1',
    'X-Telegram-Bot-Api-Secret-Token': 'tok-en_1',
    'X-Petrel-Signature': createHmac('sha256', 'tok-en_1').update(body).digest('hex'),
    'webhook-id': '42-7',
    'webhook-timestamp': '1700000000',
    'webhook-signature': expect.stringMatching(/^v1,/),
  });
});

test('a signature equals the signature that openssl computes', () => {
  const known = { ...update, body: Buffer.from('{"update_id":7}') };
  expect(makeSigner({ secret }, named)(known)).toMatchObject({
    'X-Service-Signature': '538e6fdf7cca324f9fc8ea015e63afca7942f27fa3b70ac9104e1ab99ccd5163',
    'webhook-signature': 'v1,wQpGyzv3EmGLX2BJ4B+Vrz48Q5jLz77ngxShaIav5QY=',
  });
  expect(makeSigner({ secret, secretToken: 'tok-en_1' }, named)(known)).toMatchObject({
    'X-Service-Signature': 'ef793eea2642468a6546b072dfc286d7de2b107b1534dbddebf61b01e82e0bbd',
    'webhook-signature': 'v1,wQpGyzv3EmGLX2BJ4B+Vrz48Q5jLz77ngxShaIav5QY=',
  });
});

test('the standardwebhooks library verifies a signature', () => {
  const made = makeSigningSecret(systemRandom);
  expect(made).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const signedAt = nowS();
  const headers = makeSigner({ secret: made }, named)({ ...update, nowS: signedAt });
  expect(new Webhook(made).verify(body, { ...headers })).toEqual(JSON.parse(body.toString()));
  const verify = (changed: Buffer, key = made, more = {}) =>
    new Webhook(key).verify(changed, { ...headers, ...more });
  expect(() => verify(Buffer.concat([body, Buffer.from(' ')]))).toThrow('No matching signature');
  expect(() => verify(body, makeSigningSecret(systemRandom))).toThrow('No matching signature');
  expect(() => verify(body, made, { 'webhook-id': '42-8' })).toThrow('No matching signature');
  expect(() => verify(body, made, { 'webhook-timestamp': String(signedAt - 1) })).toThrow('No matching');
  const late = makeSigner({ secret: made }, named)({ ...update, nowS: nowS() - 600 });
  expect(() => new Webhook(made).verify(body, { ...late })).toThrow('too old');
});

test('while two secrets are valid, a receiver with either secret can verify a signature', () => {
  const headers = makeSigner({ secret, formerSecret: former }, named)({ ...update, nowS: nowS() });
  expect(headers['webhook-signature']).toMatch(/^v1,\S{44} v1,\S{44}$/);
  for (const known of [secret, former])
    expect(new Webhook(known).verify(body, { ...headers })).toMatchObject({ update_id: 7 });
  const after = makeSigner({ secret }, named)({ ...update, nowS: nowS() });
  expect(() => new Webhook(former).verify(body, { ...after })).toThrow('No matching signature');
  expect(headers['X-Service-Signature']).toBe(after['X-Service-Signature']);
});
