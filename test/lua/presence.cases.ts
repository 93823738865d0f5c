import { expect } from 'vitest';
import type { Case } from './cases.js';
import { keys } from './world.js';

const windows = keys.windowsRoot(1);
const note = (what: string, more: Partial<Case>): Case => ({
  ...{ script: 'presence/note', what, keys: { windows }, answer: ['ok'] },
  ...{ args: { node: 'a', ttl_ms: '25000', users: ['5', '6'] } },
  ...more,
});
const read = (what: string, more: Partial<Case>): Case => ({
  ...{
    script: 'presence/read',
    what,
    keys: { windows },
    args: { users: ['5', '6', '7'] },
    answer: ['ok', []],
  },
  ...more,
});
const open =
  (user: number, nodes: Readonly<Record<string, number>>) =>
  (client: Parameters<NonNullable<Case['after']>>[0]) =>
    client.zadd(
      `${windows}${user}`,
      ...Object.entries(nodes).flatMap(([node, ms]) => [Date.now() + ms, node]),
    );

export const presenceCases: Case[] = [
  {
    ...{
      script: 'presence/announce',
      what: 'announces a process',
      keys: { processes: keys.nodes() },
      answer: ['ok'],
    },
    ...{ args: { id: 'me', report: '{"a":1}' }, changes: ['nodes'] },
    after: async (client) => expect(await client.hget(keys.nodes(), 'me')).toMatch(/^\d{13} {"a":1}$/),
  },
  note('records the first windows of people', {
    changes: ['windows:5', 'windows:6'],
    async after(client) {
      const left = await client.pttl(`${windows}5`);
      expect(left).toBeGreaterThan(20_000);
      expect(left).toBeLessThanOrEqual(25_000);
      const until = Number(await client.zscore(`${windows}5`, 'a'));
      expect(Math.abs(until - Date.now() - 25_000)).toBeLessThan(5_000);
    },
  }),
  note('keeps entries of other nodes and drops expired ones', {
    seeds: [open(5, { b: 20_000, c: -1_000 })],
    args: { node: 'a', ttl_ms: '25000', users: ['5'] },
    changes: ['windows:5'],
    after: async (client) =>
      expect((await client.zrange(`${windows}5`, '0', '-1')).sort()).toEqual(['a', 'b']),
  }),
  note('removes the windows of one node and keeps those of another', {
    seeds: [open(5, { a: 20_000, b: 20_000 }), open(6, { a: 20_000 })],
    args: { node: 'a', ttl_ms: '0', users: ['5', '6'] },
    changes: ['windows:5', 'windows:6'],
    async after(client) {
      expect(await client.zrange(`${windows}5`, '0', '-1')).toEqual(['b']);
      expect(await client.exists(`${windows}6`)).toBe(0);
    },
  }),
  read('reports that no person has a window', {}),
  read('reports people with a window on any node until the entry expires', {
    seeds: [open(5, { a: 20_000 }), open(6, { a: -1 }), open(7, { a: -1, b: 20_000 })],
    answer: ['ok', [Buffer.from('5'), Buffer.from('7')]],
  }),
];
