import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeHmac } from '../../src/delivery/outbound/hmac.js';

const expected = (key: Buffer, text: Buffer, encoding: 'hex' | 'base64') =>
  createHmac('sha256', key).update(text).digest(encoding);

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array));
const prefix = fc.stringMatching(/^[\w.-]{0,40}$/);
const encoding = fc.constantFrom('hex' as const, 'base64' as const);

test('an HMAC equals the result of createHmac, for any key, prefix and body', () => {
  fc.assert(
    fc.property(bytes(200), prefix, bytes(6_000), encoding, (key, first, body, form) => {
      const text = Buffer.concat([Buffer.from(first), body]);
      expect(makeHmac(key)(first, body, form)).toBe(expected(key, text, form));
      expect(makeHmac(key, null)(first, body, form)).toBe(expected(key, text, form));
    }),
  );
});

test.each([0, 63, 64, 65, 256])('a key of %i bytes is supported', (length) => {
  const key = Buffer.alloc(length, 'k');
  expect(makeHmac(key)('id.', Buffer.from('body'), 'hex')).toBe(expected(key, Buffer.from('id.body'), 'hex'));
});

test.each([4_091, 4_092, 4_093, 100_000])('a prefix with a body of %i bytes is supported', (length) => {
  const [key, body] = [Buffer.from('key'), Buffer.alloc(length, 'b')];
  const hmac = makeHmac(key);
  const text = Buffer.concat([Buffer.from('1.2.'), body]);
  expect(hmac('1.2.', body, 'base64')).toBe(expected(key, text, 'base64'));
  // The buffer still contains the earlier, longer text. The HMAC of a shorter text must not include the old bytes.
  expect(hmac('', Buffer.from('x'), 'hex')).toBe(expected(key, Buffer.from('x'), 'hex'));
});
