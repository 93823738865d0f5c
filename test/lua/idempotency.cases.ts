import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import type { Case } from './cases.js';
import { bot, keys, type Seed, seeds } from './world.js';

type More = Partial<Case> & Pick<Case, 'answer'>;

const caller = { kind: 'bot', id: bot } as const;
const bytes = keys.idempotencyBytes(caller);
const at = { claim: keys.idempotency(caller, 'D'), live: keys.idempotencyLive(caller), bytes };
const [claimName, liveName] = [`idempotency:bot.${bot}:D`, `idempotency_live:bot.${bot}`];
const bytesName = `idempotency_bytes:bot.${bot}`;
const held = { f: 'print', s: 'seed', h: 'first', u: Date.now() + 3_600_000 };
const noted = { f: 'print', s: 'seed', a: 'sealed' };
const known = (fields: Record<string, string | number>) => seeds.hash(at.claim, fields);

/** Creates idempotency keys of other calls. All of these keys expire in the given number of milliseconds. */
const live =
  (count: number, endsInMs: number): Seed =>
  (client) =>
    client.eval(
      "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], ARGV[2], i) end",
      1,
      at.live,
      count,
      Date.now() + endsInMs,
    );

const claim = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'idempotency/claim', what, keys: at },
  args: { digest: 'D', fingerprint: 'print', seed: 'new seed', holder: 'second', ...args },
  ...more,
});
const settle = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'idempotency/settle', what, keys: { claim: at.claim, bytes } },
  args: { holder: 'first', answer: 'later sealed', size: '100', ...args },
  ...more,
});

const request = keys.request(3, 'once.s.1');
const recall = (what: string, more: More): Case => ({
  ...{ script: 'idempotency/recall', what, keys: { request }, args: {} },
  ...more,
});

const reseal = (what: string, more: More): Case => ({
  ...{ script: 'idempotency/reseal', what, keys: { claim: at.claim } },
  args: { was: 'sealed', box: 'sealed anew' },
  ...more,
});

export const idempotencyCases: Case[] = [
  reseal('re-encrypts an answer', {
    seeds: [known(noted)],
    answer: ['ok', 1],
    changes: [claimName],
    after: async (client) => expect(await client.hgetall(at.claim)).toEqual({ ...noted, a: 'sealed anew' }),
  }),
  reseal('keeps an answer that changed since it was read', {
    seeds: [known({ ...noted, a: 'other' })],
    answer: ['ok', 0],
  }),
  reseal('ignores a call without an answer', { seeds: [known(held)], answer: ['ok', 0] }),
  reseal('ignores a missing key', { answer: ['ok', 0] }),
  recall('reports a new request as unknown', { answer: ['unknown'] }),
  recall('returns the result of an applied request', {
    seeds: [seeds.text(request, '8 7 0')],
    answer: ['ok', '8 7 0'],
  }),
  recall('returns a record that contains a line break', {
    seeds: [seeds.text(request, '8 7 0\na\nb')],
    answer: ['ok', '8 7 0', 'a\nb'],
  }),
  claim('claims a new key', {
    answer: ['ok', 'new seed', null, 0],
    changes: [claimName, liveName],
    after: async (client) => {
      expect(await client.hmget(at.claim, 'f', 's', 'h', 'a')).toEqual(['print', 'new seed', 'second', null]);
      for (const key of [at.claim, at.live])
        expect(limits.idempotency_ttl_ms - (await client.pttl(key))).toBeLessThan(60_000);
    },
  }),
  claim('refuses a key held by another run', { seeds: [known(held)], answer: ['pending'] }),
  claim('renews the claim of the same run', {
    seeds: [known({ ...held, h: 'second' })],
    answer: ['ok', 'seed', null, 1],
    changes: [claimName],
  }),
  claim('takes over a key whose holder has died', {
    seeds: [known({ ...held, u: Date.now() - 1 })],
    answer: ['ok', 'seed', null, 1],
    changes: [claimName],
    after: async (client) => expect(await client.hget(at.claim, 'h')).toBe('second'),
  }),
  claim('returns the answer of a completed key', { seeds: [known(noted)], answer: ['ok', 'seed', 'sealed'] }),
  claim(
    'refuses a key with other parameters',
    { seeds: [known(noted)], answer: ['other_parameters'] },
    { fingerprint: 'another' },
  ),
  claim('refuses a key above the limit', {
    seeds: [live(limits.idempotency_keys_max, 3_600_000)],
    answer: ['too_many'],
  }),
  claim('refuses a key when the limit in bytes per day is reached', {
    seeds: [seeds.text(bytes, `${limits.idempotency_bytes_max}`)],
    answer: ['too_many'],
  }),
  claim('claims a key after the former keys have expired', {
    seeds: [live(limits.idempotency_keys_max, -1)],
    answer: ['ok', 'new seed'],
    changes: [claimName, liveName],
    after: async (client) =>
      expect(await client.zcard(at.live)).toBe(limits.idempotency_keys_max - limits.script_entries_max + 1),
  }),
  settle('stores the answer of the holder', {
    seeds: [known(held)],
    answer: ['ok', 1],
    changes: [bytesName, claimName],
    async after(client) {
      expect(await client.hgetall(at.claim)).toEqual({ f: 'print', s: 'seed', a: 'later sealed' });
      expect(await client.get(bytes)).toBe('100');
      expect(limits.idempotency_ttl_ms - (await client.pttl(bytes))).toBeLessThan(60_000);
    },
  }),
  settle(
    'does not store a large answer, because a repeat can rebuild it',
    {
      seeds: [known(held), seeds.text(bytes, '7')],
      answer: ['ok', 1],
      changes: [bytesName, claimName],
      async after(client) {
        expect(await client.hmget(at.claim, 'u', 'a')).toEqual(['0', null]);
        expect(await client.get(bytes)).toBe('9007');
      },
    },
    { answer: '', size: '9000' },
  ),
  settle('keeps the first answer', { seeds: [known(noted)], answer: ['ok', 0], changes: [] }),
  settle('ignores an answer after the key has expired', { answer: ['ok', 0], changes: [] }),
  settle(
    'releases the key',
    {
      seeds: [known(held)],
      answer: ['ok', 1],
      changes: [claimName],
      after: async (client) => expect(await client.hget(at.claim, 'u')).toBe('0'),
    },
    { answer: '', size: '0' },
  ),
  settle(
    'does not release a key that another run holds',
    { seeds: [known(held)], answer: ['ok', 0], changes: [] },
    { answer: '', size: '0', holder: 'late' },
  ),
];
