import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import type { Case } from './cases.js';
import { keys, seeds } from './world.js';

type More = Partial<Case> & Pick<Case, 'answer'>;

const user = 5;
const at = { drafts: keys.personDrafts(user), channel: keys.userChannel(user) };
const name = `person_drafts:${user}`;
const put = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'chats/put_person_draft', what, keys: at, args: { chat: '-7', text: 'é\nf', ...args } },
  ...more,
});
const read = (what: string, more: More): Case => ({
  ...{ script: 'chats/read_person_drafts', what, keys: { drafts: at.drafts }, args: {} },
  ...more,
});
/** Seeds drafts with ascending versions, and the total bytes of their texts. */
const stored = (texts: Readonly<Record<string, string>>, first = 1_000) =>
  seeds.hash(at.drafts, {
    ...Object.fromEntries(Object.entries(texts).map(([chat, text], n) => [chat, `${first + n} ${text}`])),
    b: Buffer.byteLength(Object.values(texts).join('')),
  });
const present = (client: Redis) => client.hgetall(at.drafts);
/** Returns `count` texts, keyed by chat id. Every second text is empty, so that its chat has no draft. */
const many = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [n + 10, n % 2 === 0 ? 'x' : '']));
const later = 9_000_000_000_000;

export const personDraftCases: Case[] = [
  put('stores a draft, and lets it expire', {
    answer: ['ok', expect.any(String)],
    changes: [name],
    async after(client) {
      const { '-7': draft, ...rest } = await present(client);
      expect(draft).toMatch(/^\d{13} é\nf$/);
      expect(rest).toEqual({ b: '4' });
      const left = await client.pttl(at.drafts);
      expect(left).toBeGreaterThan(limits.person_draft_ttl_ms - 60_000);
      expect(left).toBeLessThanOrEqual(limits.person_draft_ttl_ms);
    },
  }),
  put('gives each change a greater version, even if the clock was set back', {
    seeds: [stored({ '-7': 'old' }, later)],
    answer: ['ok', later + 1],
    changes: [name],
    async after(client) {
      expect(await present(client)).toEqual({ '-7': `${later + 1} é\nf`, b: '4' });
    },
  }),
  put('changes nothing if the text is the same', {
    seeds: [stored({ '-7': 'é\nf' })],
    answer: ['ok', 1_000],
    changes: [],
  }),
  put(
    'keeps the version of a removed draft',
    {
      seeds: [stored({ '-7': 'old', '-9': 'other' }, later)],
      answer: ['ok', later + 1],
      changes: [name],
      async after(client) {
        expect(await present(client)).toEqual({ '-7': `${later + 1} `, '-9': `${later + 1} other`, b: '5' });
      },
    },
    { text: '' },
  ),
  put(
    'stores nothing if a draft is removed that does not exist',
    { answer: ['ok', 0], changes: [] },
    { text: '' },
  ),
  put('drops a removed draft first, even if other drafts are older', {
    seeds: [stored(many(limits.person_drafts_max))],
    answer: ['ok', expect.any(String)],
    changes: [name],
    async after(client) {
      const all = await present(client);
      expect(Object.keys(all)).toHaveLength(limits.person_drafts_max + 1);
      expect([all[10], all[11], all[13]]).toEqual(['1000 x', undefined, '1003 ']);
    },
  }),
  put('drops the oldest drafts that exceed the number of bytes', {
    seeds: [stored({ 1: 'x', 2: 'y'.repeat(limits.person_drafts_bytes_max - 4), 3: 'z' })],
    answer: ['ok', expect.any(String)],
    changes: [name],
    async after(client) {
      const { 3: kept, '-7': draft, b, ...rest } = await present(client);
      expect([kept, draft?.slice(14), b, rest]).toEqual(['1002 z', 'é\nf', '5', {}]);
    },
  }),
  read('returns all drafts', {
    seeds: [stored({ '-7': 'a b' })],
    answer: ['ok', ['-7', '1000 a b', 'b', '3'].map((text) => Buffer.from(text))],
  }),
  read('returns nothing if there are no drafts', { answer: ['ok', []] }),
];
