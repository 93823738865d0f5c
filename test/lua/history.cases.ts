/** Calls of the scripts below history/, and every status they can end in. */
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import type { Case } from './cases.js';
import { keys, seeds } from './world.js';

const at = { history: keys.postgres(), revoked: keys.revoked() };
const known = seeds.hash(at.history, { 'mark:3': 7, id: 100, version: 50, server: 'a 1', incarnation: 2 });
const revoked = async (client: Parameters<typeof known>[0]) => {
  const old = Date.now() - limits.revocation_age_ms_max - 1_000;
  await client.zadd(at.revoked, `${old}`, 'old', `${Date.now()}`, 'bot:5', `${Date.now() + 1}`, 'x');
};

export const historyCases: Case[] = [
  {
    script: 'history/note',
    what: 'marks grow, and what was revoked is kept for so long',
    keys: at,
    args: { shard: '3', mark: '8', id: '99', version: '51', changes: ['+new', '-bot:5', '+user:6'] },
    seeds: [known, revoked],
    answer: ['ok'],
    changes: ['postgres', 'revoked'],
    after: async (client) => {
      expect(await client.hmget(at.history, 'mark:3', 'id', 'version')).toEqual(['8', '100', '51']);
      expect((await client.zrangebyscore(at.revoked, '-inf', '+inf')).sort()).toEqual(['new', 'user:6', 'x']);
    },
  },
  {
    script: 'history/note',
    what: 'what comes late changes nothing',
    keys: at,
    args: { shard: '3', mark: '6', id: '1', version: '1', changes: [] },
    seeds: [known, revoked],
    answer: ['ok'],
    changes: [],
  },
  {
    script: 'history/read',
    what: 'nothing is known',
    keys: at,
    args: {},
    answer: ['ok', []],
    changes: [],
  },
  {
    script: 'history/read_revoked',
    what: 'a page',
    keys: at,
    args: { from: '1', count: '1' },
    seeds: [revoked],
    answer: ['ok', expect.toSatisfy((found) => (found as Buffer[]).map(String).join() === 'bot:5')],
    changes: [],
  },
  {
    script: 'history/meet',
    what: 'another server',
    keys: at,
    args: { server: 'a 2', incarnation: '1' },
    seeds: [known],
    answer: ['ok', 'a 1'],
    changes: ['postgres'],
    after: async (client) =>
      expect(await client.hmget(at.history, 'server', 'incarnation')).toEqual(['a 2', '2']),
  },
];
