import { expect } from 'vitest';
import type { Case } from './cases.js';
import { keys, type Seed } from './world.js';

const bucket = keys.rate(1, 'bot:7');
const name = 'rate:bot:7';
/** Makes a case for a rate limit. Its token bucket allows three calls at once, and one more call every 100 s. */
const take = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{
    script: 'limits/take',
    what,
    keys: { bucket },
    args: { calls: '3', interval_us: '100000000', count: '1', ...args },
  },
  ...more,
});
const fullIn = (seconds: number): Seed[] => [
  (client) => client.set(bucket, String((Date.now() + seconds * 1_000) * 1_000)),
];

export const limitCases: Case[] = [
  take('takes the first token of a full bucket', {
    answer: ['ok', 0],
    changes: [name],
    async after(client) {
      const left = await client.pttl(bucket);
      expect(left).toBeGreaterThan(50_000);
      expect(left).toBeLessThanOrEqual(100_000);
      // By default, Lua writes large numbers with an exponent. The script must write all digits.
      expect(await client.get(bucket)).toMatch(/^\d{16}$/);
    },
  }),
  take('takes the last token', { seeds: fullIn(190), answer: ['ok', 0], changes: [name] }),
  take('refuses a token of an empty bucket without debt', { seeds: fullIn(290), answer: ['ok'] }),
  take('takes a token that was refilled meanwhile', {
    seeds: fullIn(199),
    answer: ['ok', 0],
    changes: [name],
  }),
  take(
    'takes more tokens than the bucket holds and records the debt',
    {
      answer: ['ok', 0],
      changes: [name],
      after: async (client) => expect(await client.pttl(bucket)).toBeGreaterThan(950_000),
    },
    { count: '10' },
  ),
  take(
    'gives a token back, even to an empty bucket',
    {
      seeds: fullIn(290),
      answer: ['ok', 0],
      changes: [name],
      async after(client) {
        const left = await client.pttl(bucket);
        expect(left).toBeGreaterThan(100_000);
        expect(left).toBeLessThanOrEqual(190_000);
      },
    },
    { count: '-1' },
  ),
  take(
    'gives no token to a bucket that a token makes full',
    { seeds: fullIn(90), answer: ['ok', 0], changes: [name] },
    { count: '-1' },
  ),
  take('takes a token of a bucket that has been full for long', {
    seeds: fullIn(-3_600),
    answer: ['ok', 0],
    changes: [name],
  }),
];
