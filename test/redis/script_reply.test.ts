import fc from 'fast-check';
import { expect, test } from 'vitest';
import { numberOf } from '../../src/redis/scripts/script_reply.js';

test('a number that a script returns as text is read as a number', () => {
  const text = fc.oneof(
    fc.integer().map(String),
    fc.maxSafeInteger().map(String),
    fc.double().map(String),
    fc.string({ maxLength: 20 }),
    fc.constantFrom('', '0', '-0', '007', '1e3', ' 5', '999999999999999', '1000000000000000'),
  );
  fc.assert(
    fc.property(text, (each) => {
      expect(numberOf(Buffer.from(each))).toBe(Number(each));
    }),
  );
  expect(numberOf(5)).toBe(5);
});
