import nacl from 'tweetnacl';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeCertificate } from '../support/certificates.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import { resultOf, type Service, startService } from '../support/service.js';

/** The private keys of the first two test vectors in RFC 8032 §7.1, in base64url. */
const keys = ['nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A', 'TM0Imyj_ltqdtsNG7BFOD1uKMZ81q6Yk2oz27U-4pvs'];
const publicKeys = [
  '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  'PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw',
];
const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
let service: Service;
let receiver: Receiver;
const received: Array<{ headers: Readonly<Record<string, unknown>>; body: Buffer }> = [];

beforeAll(async () => {
  const extraEnv = { WEBHOOK_SIGNING_KEYS: keys.join(','), WEBHOOK_ALLOW_CIDRS: '127.0.0.1' };
  service = await startService({ combined: true, extraEnv });
  receiver = await startReceiver(certificate, async ({ headers }, response, body) => {
    received.push({ headers, body });
    response.end();
  });
});
afterAll(async () => {
  await receiver?.close();
  await service?.stop();
});

test.each([
  ['of a webhook', 'setWebhook', {}],
  ['of a webhook route', 'setWebhookRoute', { name: 'all' }],
])(
  'a receiver %s verifies a delivery with the published key of the installation',
  async (_, method, more) => {
    received.length = 0;
    const answer = await fetch(`${service.fronts[0].url}/.well-known/jwks.json`);
    expect(answer.headers.get('content-type')).toBe('application/json');
    const set = (await answer.json()) as { keys: Array<Record<string, unknown>> };
    expect(set.keys).toMatchObject(
      publicKeys.map((x) => ({ kty: 'OKP', crv: 'Ed25519', x, alg: 'EdDSA', use: 'sig' })),
    );
    // The thumbprint of this key is the example in RFC 8037 §A.3.
    expect(set.keys[0]?.kid).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k');
    expect(Object.keys(set.keys[0] ?? {}).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);

    const owner = await service.newUser('olga');
    const bot = await service.newBot(owner, 'signed');
    const url = `https://127.0.0.1:${receiver.port}/`;
    await resultOf(service.bot(bot, method, { url, certificate: certificate.cert, ...more }));
    await service.openChat(owner, bot);
    await resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text: 'пример ✓' }));
    await expect.poll(() => received.some(({ body }) => body.includes('пример ✓'))).toBe(true);

    for (const { headers, body } of received) {
      const signed = Buffer.concat([
        Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`),
        body,
      ]);
      const [secret, own, ...more] = String(headers['webhook-signature']).split(' ');
      expect([secret?.slice(0, 3), own?.slice(0, 4), more]).toEqual(['v1,', 'v1a,', []]);
      const signature = Buffer.from(own?.slice(4) ?? '', 'base64');
      const isValid = (text: Uint8Array, x = '') =>
        nacl.sign.detached.verify(text, signature, Buffer.from(x, 'base64url'));
      expect(isValid(signed, publicKeys[0])).toBe(true);
      expect(isValid(signed, publicKeys[1])).toBe(false);
      expect(isValid(Buffer.concat([signed, Buffer.from(' ')]), publicKeys[0])).toBe(false);
    }
  },
);
