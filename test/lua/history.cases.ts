import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import type { Case } from './cases.js';
import { keys, seeds } from './world.js';

const at = { history: keys.postgres(), revoked: keys.revoked() };
const announcing = { history: keys.postgres(), flushed: keys.flushed() };
const known = seeds.hash(at.history, {
  ...{ 'mark:3': 7, id: 100, version: 50, server: 'a 1', running: '5 1 10', incarnation: 2 },
  ...{ 'gone:a 0': 1_000, 'gone:5 0 9': 1_000 },
});
const revoked = async (client: Parameters<typeof known>[0]) => {
  const old = Date.now() - limits.revocation_age_ms_max - 1_000;
  await client.zadd(at.revoked, `${old}`, 'old', `${Date.now()}`, 'bot:5', `${Date.now() + 1}`, 'x');
};

export const historyCases: Case[] = [
  {
    script: 'history/note',
    what: 'raises marks, and adds and removes revocations',
    keys: at,
    args: {
      running: '5 1 10',
      shard: '3',
      mark: '8',
      id: '99',
      version: '51',
      changes: ['+new', '-bot:5', '+user:6'],
    },
    seeds: [known, revoked],
    answer: ['ok', 0],
    changes: ['postgres', 'revoked'],
    after: async (client) => {
      expect(await client.hmget(at.history, 'mark:3', 'id', 'version')).toEqual(['8', '100', '51']);
      expect((await client.zrangebyscore(at.revoked, '-inf', '+inf')).sort()).toEqual(['new', 'user:6', 'x']);
    },
  },
  {
    script: 'history/note',
    what: 'ignores a late report',
    keys: at,
    args: { running: '5 1 10', shard: '3', mark: '6', id: '1', version: '1', changes: [] },
    seeds: [known, revoked],
    answer: ['ok', 0],
    changes: [],
  },
  {
    script: 'history/note',
    what: 'reports that a replaced server’s commits do not count',
    keys: at,
    args: { running: '5 0 9', shard: '3', mark: '8', id: '101', version: '52', changes: [] },
    seeds: [known, revoked],
    answer: ['ok', 1],
    changes: ['postgres'],
    after: async (client) =>
      expect(await client.hmget(at.history, 'mark:3', 'id', 'version', 'incarnation')).toEqual([
        ...['7', '101', '52', '2'],
      ]),
  },
  {
    script: 'history/note',
    what: 'adds revocations of a replaced server and removes none',
    keys: at,
    args: {
      ...{ running: '5 0 9', shard: '3', mark: '8', id: '1', version: '1' },
      changes: ['+new', '-bot:5'],
    },
    seeds: [known, revoked],
    answer: ['ok', 1],
    changes: ['postgres', 'revoked'],
    after: async (client) => {
      expect(await client.hmget(at.history, 'mark:3', 'incarnation')).toEqual(['7', '3']);
      expect((await client.zrangebyscore(at.revoked, '-inf', '+inf')).sort()).toEqual(['bot:5', 'new', 'x']);
    },
  },
  {
    script: 'history/announce',
    what: 'publishes a hint and stores nothing',
    keys: announcing,
    args: { hint: '3 7', servers: ['5 1 10', '5 1 11'] },
    seeds: [known],
    answer: ['ok'],
    changes: [],
  },
  {
    script: 'history/announce',
    what: 'refuses if one of the servers was replaced',
    keys: announcing,
    args: { hint: '3 7', servers: ['5 1 10', '5 0 9'] },
    seeds: [known],
    answer: ['replaced'],
    changes: [],
  },
  {
    script: 'history/read',
    what: 'returns nothing for an unknown history',
    keys: at,
    args: {},
    answer: ['ok', []],
    changes: [],
  },
  {
    script: 'history/read_revoked',
    what: 'returns one page of revocations',
    keys: at,
    args: { from: '2', count: '2' },
    seeds: [(client) => client.zadd(at.revoked, 1, 'user:1', 2, 'bot:5', 3, 'bot:6', 3, 'bot:7')],
    answer: [
      'ok',
      expect.toSatisfy((found) => (found as Buffer[]).map(String).join() === 'bot:5,bot:6'),
      3,
      1,
    ],
    changes: [],
  },
  {
    script: 'history/meet',
    what: 'records another server as the current one',
    keys: at,
    args: { server: 'a 2', running: '5 2 11', incarnation: '1' },
    seeds: [known],
    answer: ['ok', 'a 1'],
    changes: ['postgres'],
    after: async (client) => {
      const fields = ['server', 'running', 'incarnation'];
      expect(await client.hmget(at.history, ...fields)).toEqual(['a 2', '5 2 11', '2']);
      expect(await client.hexists(at.history, 'gone:a 1')).toBe(1);
      expect(await client.hexists(at.history, 'gone:5 1 10')).toBe(1);
    },
  },
  {
    script: 'history/meet',
    what: 'recognises the same server after a restart',
    keys: at,
    args: { server: 'a 1', running: '5 1 12', incarnation: '2' },
    seeds: [known],
    answer: ['ok', 'a 1'],
    changes: ['postgres'],
    after: async (client) => {
      expect(await client.hget(at.history, 'running')).toBe('5 1 12');
      expect(await client.hexists(at.history, 'gone:a 1')).toBe(0);
      expect(await client.hexists(at.history, 'gone:5 1 10')).toBe(1);
    },
  },
  {
    script: 'history/meet',
    what: 'refuses a history that was replaced',
    keys: at,
    args: { server: 'a 0', running: '5 0 13', incarnation: '2' },
    seeds: [known],
    answer: ['replaced'],
    changes: [],
  },
  {
    script: 'history/meet',
    what: 'refuses a server that was replaced',
    keys: at,
    args: { server: 'a 1', running: '5 0 9', incarnation: '2' },
    seeds: [known],
    answer: ['replaced'],
    changes: [],
  },
  {
    script: 'history/meet',
    what: 'removes the oldest of many replaced servers',
    keys: at,
    args: { server: 'a 2', running: '5 2 11', incarnation: '2' },
    seeds: [
      known,
      seeds.hash(
        at.history,
        Object.fromEntries(
          Array.from({ length: limits.replaced_servers_kept_max }, (_, i) => [`gone:${i}`, 2_000 + i]),
        ),
      ),
    ],
    answer: ['ok', 'a 1'],
    changes: ['postgres'],
    after: async (client) => {
      const gone = (await client.hkeys(at.history)).filter((name) => name.startsWith('gone:'));
      expect(gone).toHaveLength(limits.replaced_servers_kept_max);
      expect(gone).toContain('gone:5 1 10');
      expect(gone).not.toContain('gone:a 0');
    },
  },
  {
    script: 'history/accept',
    what: 'makes a replaced server the current one again',
    keys: at,
    args: { server: 'a 0', running: '5 0 9' },
    seeds: [known],
    answer: ['ok'],
    changes: ['postgres'],
    after: async (client) => {
      expect(await client.hmget(at.history, 'server', 'running')).toEqual(['a 0', '5 0 9']);
      const gone = (await client.hkeys(at.history)).filter((name) => name.startsWith('gone:'));
      expect(gone.sort()).toEqual(['gone:5 1 10', 'gone:a 1']);
    },
  },
];
