/** Calls of the scripts below limits/, and every status they can end in. */
import { expect } from 'vitest';
import type { Case } from './cases.js';
import { keys, seeds } from './world.js';

const bucket = keys.rate(1, 'bot:7');
const name = 'rate:bot:7';
/** Three calls at once, one of which comes back in 100 s. */
const take = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{
    script: 'limits/take',
    what,
    keys: { bucket },
    args: { calls: '3', interval_us: '100000000', count: '1', ...args },
  },
  ...more,
});
/** A bucket that is full again so many seconds from now. */
const fullIn = (seconds: number) => [seeds.text(bucket, String((Date.now() + seconds * 1_000) * 1_000))];

export const limitCases: Case[] = [
  take('the first', {
    answer: ['ok', 0],
    changes: [name],
    async after(client) {
      const left = await client.pttl(bucket);
      expect(left).toBeGreaterThan(50_000);
      expect(left).toBeLessThanOrEqual(100_000);
      // Not in the exponent form of large numbers.
      expect(await client.get(bucket)).toMatch(/^\d{16}$/);
    },
  }),
  take('the last that is there', { seeds: fullIn(190), answer: ['ok', 0], changes: [name] }),
  take('one of an empty bucket, which empties it no further', { seeds: fullIn(290), answer: ['ok'] }),
  take('one that came back meanwhile', { seeds: fullIn(199), answer: ['ok', 0], changes: [name] }),
  take(
    'more than the bucket holds, which is owed',
    {
      answer: ['ok', 0],
      changes: [name],
      after: async (client) => expect(await client.pttl(bucket)).toBeGreaterThan(950_000),
    },
    { count: '10' },
  ),
  take('of a bucket that was full long ago', { seeds: fullIn(-3_600), answer: ['ok', 0], changes: [name] }),
];
