import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
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

const { history_step_ms: step, history_points_max: places } = limits;
/**
 * Seeds the current and the next point of the figures on the operators' page. The script may run only after the next
 * point has begun.
 */
const points =
  (former: string, age = 0) =>
  async (client: Redis) => {
    const [seconds] = await client.time();
    const current = Math.floor((Number(seconds) * 1_000) / step);
    for (const number of [current, current + 1])
      await client.hset(keys.figures(), String(number % places), `${number - age} ${former}`);
  };
const addFigures = (what: string, more: Partial<Case>): Case => ({
  ...{ script: 'presence/add_figures', what, keys: { figures: keys.figures() } },
  ...{ args: { added: '+calls 3 lag_ms 20' }, answer: ['ok'], changes: ['figures'] },
  ...more,
});
/** Returns the figures that the script stored in a point, without the number of the point. */
async function written(client: Redis, former: string): Promise<string | undefined> {
  const texts = Object.values(await client.hgetall(keys.figures())).map((text) => text.replace(/^\d+ /, ''));
  return texts.find((text) => text !== former);
}

export const presenceCases: Case[] = [
  addFigures('begins a point, and says when the middle of the next point is', {
    answer: ['ok', expect.any(Number), 1],
    async after(client) {
      const [[place, text] = []] = Object.entries(await client.hgetall(keys.figures()));
      const [seconds] = await client.time();
      const [number] = (text ?? '').split(' ');
      expect(text).toBe(`${number} +calls 3 lag_ms 20`);
      expect(Number(place)).toBe(Number(number) % places);
      expect(Math.abs(Number(number) * step - Number(seconds) * 1_000)).toBeLessThan(2 * step);
      expect(await client.pttl(keys.figures())).toBeGreaterThan((places - 1) * step);
    },
  }),
  addFigures('adds sums and keeps the largest of other figures', {
    seeds: [points('+calls 4 +failed 1 lag_ms 30 redis_bytes 5000000000')],
    ...{ args: { added: '+calls 3 lag_ms 20 redis_bytes 6000000000 +slowed 2' } },
    answer: ['ok', expect.any(Number), 0],
    after: async (client) =>
      expect(await written(client, '+calls 4 +failed 1 lag_ms 30 redis_bytes 5000000000')).toBe(
        '+calls 7 +failed 1 lag_ms 30 redis_bytes 6000000000 +slowed 2',
      ),
  }),
  addFigures('replaces the point of an hour ago', {
    seeds: [points('+calls 4', places)],
    answer: ['ok', expect.any(Number), 1],
    after: async (client) => expect(await written(client, '+calls 4')).toBe('+calls 3 lag_ms 20'),
  }),
  addFigures('refuses a point that grows too large', {
    seeds: [points('+calls 4')],
    args: { added: `+${'x'.repeat(limits.history_point_bytes_max)} 1` },
    ...{ answer: ['too_large'], changes: [] },
  }),
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
  note('removes the windows of one node and keeps the windows of another node', {
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
