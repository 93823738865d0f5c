import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { limits } from '../../src/limits.js';
import {
  isAdminToken,
  makeAdminToken,
  makeToken,
  maskTokens,
  parseToken,
  type TokenKind,
} from '../../src/rules/token.js';

const kind = fc.constantFrom<TokenKind>('bot', 'user');
const id = fc.oneof(fc.integer({ min: 1, max: 1e6 }), fc.integer({ min: 1, max: limits.id_max - 1 }));
const random = fc.uint8Array({ minLength: 28, maxLength: 28 });
const zeros = new Uint8Array(28);

describe('makeToken', () => {
  it('makeToken returns a token in the documented format', () => {
    const covered = `42:A${'A'.repeat(28)}`;
    const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    const token = makeToken('bot', 42, zeros);
    expect(token.slice(0, -6)).toBe(covered);
    const value = [...token.slice(-6)].reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0);
    // This is the CRC-32 that zlib computes for the text.
    expect(value).toBe(2_131_714_455);
    expect(makeToken('user', 42, zeros).slice(0, -6)).toBe(`42:U${'A'.repeat(28)}`);
  });

  it('makeToken uses every character with the same probability', () => {
    const seen = new Map<string, number>();
    for (let byte = 0; byte < 256; byte++) {
      const char = makeToken('bot', 1, new Uint8Array(28).fill(byte))[4]!;
      seen.set(char, (seen.get(char) ?? 0) + 1);
    }
    expect(seen.size).toBe(64);
    expect(new Set(seen.values())).toEqual(new Set([4]));
  });

  it.each([0, -1, 1.5, Number.NaN, limits.id_max])('makeToken refuses the identifier %s', (bad) => {
    expect(() => makeToken('bot', bad, zeros)).toThrow(RangeError);
  });

  it('makeToken refuses too few random bytes', () => {
    expect(() => makeToken('bot', 1, new Uint8Array(27))).toThrow(RangeError);
  });
});

test('a token of an administrator is not accepted as a token of a bot or person', () => {
  const token = makeAdminToken(7, new Uint8Array(28));
  expect(token.slice(0, 3)).toBe('7:O');
  expect([isAdminToken(token), parseToken(token)]).toEqual([true, null]);
  for (const kind of ['bot', 'user'] as const)
    expect(isAdminToken(makeToken(kind, 7, new Uint8Array(28)))).toBe(false);
  expect(isAdminToken(`${token.slice(0, -1)}~`)).toBe(false);
  expect(maskTokens(`x ${token} y`)).toBe('x 7:… y');
});

describe('parseToken', () => {
  it('parseToken returns the kind and id of a token that makeToken made', () => {
    fc.assert(
      fc.property(kind, id, random, (k, n, bytes) => {
        const token = makeToken(k, n, bytes);
        expect(token).toMatch(/^\d+:[AU][A-Za-z0-9_-]{34}$/);
        expect(parseToken(token)).toEqual({ kind: k, id: n });
      }),
      { numRuns: 1_000 },
    );
  });

  it('parseToken refuses a token with one character changed, removed or added', () => {
    const chars = fc.constantFrom(...'0123456789ABCUZabz_-: é');
    fc.assert(
      fc.property(kind, id, random, fc.nat(), chars, (k, n, bytes, place, char) => {
        const token = makeToken(k, n, bytes);
        const at = place % token.length;
        fc.pre(token[at] !== char);
        expect(parseToken(token.slice(0, at) + char + token.slice(at + 1))).toBeNull();
        expect(parseToken(token.slice(0, at) + token.slice(at + 1))).toBeNull();
        expect(parseToken(token.slice(0, at) + char + token.slice(at))).toBeNull();
      }),
      { numRuns: 3_000 },
    );
  });

  it('parseToken refuses random texts', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(parseToken(text)).toBeNull();
      }),
    );
  });

  function sealed(covered: string): string {
    const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    let crc = 0xffffffffn;
    for (const byte of Buffer.from(covered)) {
      crc ^= BigInt(byte);
      for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ 0xedb88320n : crc >> 1n;
    }
    let rest = crc ^ 0xffffffffn;
    let checksum = '';
    for (let i = 0; i < 6; i++, rest /= 62n) checksum = digits[Number(rest % 62n)] + checksum;
    return covered + checksum;
  }
  const secret = 'a'.repeat(28);

  it('parseToken accepts tokens that an independent implementation made', () => {
    expect(parseToken(sealed(`9999999999999:A${secret}`))).toEqual({ kind: 'bot', id: 9_999_999_999_999 });
    expect(parseToken(sealed(`1:U${secret}`))).toEqual({ kind: 'user', id: 1 });
  });

  it.each([
    ['a leading zero', `01:A${secret}`],
    ['the identifier 0', `0:A${secret}`],
    ['an identifier that is too large', `10000000000000:A${secret}`],
    ['a sign', `-1:A${secret}`],
    ['no identifier', `:A${secret}`],
    ['another kind', `1:B${secret}`],
    ['a secret that is too short', `1:A${secret.slice(1)}`],
    ['a secret that is too long', `1:A${secret}a`],
    ['another character', `1:A${secret.slice(1)}+`],
    ['a space', ` 1:A${secret}`],
  ])('parseToken refuses %s, even if the checksum is right', (_, covered) => {
    expect(parseToken(sealed(covered))).toBeNull();
  });
});
