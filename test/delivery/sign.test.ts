/** Signatures against known answers and against the receiver's side as others wrote it. */
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { makeSigner, makeSigningSecret } from '../../src/delivery/sign.js';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const former = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';
const body = Buffer.from('{"update_id":7,"message":{"text":"пример ✓"}}');
const update = { botId: '42', updateId: 7, body, nowS: 1_700_000_000 };
const nowS = () => Math.floor(Date.now() / 1_000);

test('the headers, without and with a secret token', () => {
  expect(makeSigner({ secret }, 'Service')(update)).toEqual({
    'Content-Type': 'application/json',
    'X-Service-Signature': createHmac('sha256', secret).update(body).digest('hex'),
    'webhook-id': '42-7',
    'webhook-timestamp': '1700000000',
    'webhook-signature': expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
  });
  expect(makeSigner({ secret, secretToken: 'tok-en_1' }, 'Petrel')(update)).toEqual({
    'Content-Type': 'application/json',
    'X-Petrel-Bot-Api-Secret-Token': 'tok-en_1',
    'X-Telegram-Bot-Api-Secret-Token': 'tok-en_1',
    'X-Petrel-Signature': createHmac('sha256', 'tok-en_1').update(body).digest('hex'),
    'webhook-id': '42-7',
    'webhook-timestamp': '1700000000',
    'webhook-signature': expect.stringMatching(/^v1,/),
  });
});

test('known answers', () => {
  // RFC 4231, test case 2.
  const signed = makeSigner(
    { secret, secretToken: 'Jefe' },
    'Service',
  )({
    ...update,
    body: Buffer.from('what do ya want for nothing?'),
  });
  expect(signed['X-Service-Signature']).toBe(
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  );
  // The example of the Standard Webhooks libraries, whose message id is not of our form: the same content, split elsewhere.
  const [, , id, timestamp, payload] = [
    '',
    '',
    'msg_p5jXN8AQM9LWM0D4loKWxJek',
    1_614_265_330,
    '{"test": 2432232314}',
  ];
  const content = `${id}.${timestamp}.${payload}`;
  const key = Buffer.from(secret.slice(6), 'base64');
  expect(createHmac('sha256', key).update(content).digest('base64')).toBe(
    'g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  );
});

test('the maintained library verifies what is sent', () => {
  const made = makeSigningSecret();
  expect(made).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const headers = makeSigner({ secret: made }, 'Service')({ ...update, nowS: nowS() });
  expect(new Webhook(made).verify(body, { ...headers })).toEqual(JSON.parse(body.toString()));
  const verify = (changed: Buffer, key = made, more = {}) =>
    new Webhook(key).verify(changed, { ...headers, ...more });
  expect(() => verify(Buffer.concat([body, Buffer.from(' ')]))).toThrow('No matching signature');
  expect(() => verify(body, makeSigningSecret())).toThrow('No matching signature');
  expect(() => verify(body, made, { 'webhook-id': '42-8' })).toThrow('No matching signature');
  expect(() => verify(body, made, { 'webhook-timestamp': String(nowS() - 1) })).toThrow('No matching');
  const late = makeSigner({ secret: made }, 'Service')({ ...update, nowS: nowS() - 600 });
  expect(() => new Webhook(made).verify(body, { ...late })).toThrow('too old');
});

test('while two secrets are valid, receivers that know either one verify', () => {
  const headers = makeSigner({ secret, formerSecret: former }, 'Service')({ ...update, nowS: nowS() });
  expect(headers['webhook-signature']).toMatch(/^v1,\S{44} v1,\S{44}$/);
  for (const known of [secret, former])
    expect(new Webhook(known).verify(body, { ...headers })).toMatchObject({ update_id: 7 });
  const after = makeSigner({ secret }, 'Service')({ ...update, nowS: nowS() });
  expect(() => new Webhook(former).verify(body, { ...after })).toThrow('No matching signature');
  expect(headers['X-Service-Signature']).toBe(after['X-Service-Signature']);
});
