/**
 * Tests whether a node uses, adopts or refuses a Redis. The node compares the installation and the generation that are
 * stored in Redis and in Postgres. Also tests how a node checks the masters of a cluster.
 */
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { type Adoption, decide, Identity, type RedisIdentity } from '../../src/journal/identity.js';
import type { OtherNode } from '../../src/postgres/identity.js';
import { RedisCluster } from '../../src/redis/cluster.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { freshCluster, openAnywhere } from '../support/cluster.js';
import { migratedDatabase } from '../support/servers.js';
import { ready_ms_max } from '../support/times.js';

const none: RedisIdentity = { id: null, generation: 0, used: false, run: null, seal: null };
const named = (generation: number, id = 'ours'): RedisIdentity => ({ ...none, id, generation, used: true });
const unnamed = (run: string): RedisIdentity => ({ ...none, used: true, run });
const node = (generation: number | null, away = false): OtherNode => ({ generation, away });
const opened = { run_id: 'run', seal: null, seal_run: null };

function decided(
  redis: RedisIdentity,
  generation: number,
  others: readonly OtherNode[] = [],
  adoption: Adoption = 'unless_used',
  isSameServer = false,
): string {
  const found = decide(
    redis,
    { id: 'ours', generation, held: false },
    others,
    opened,
    adoption,
    isSameServer,
  );
  if ('refusal' in found) return `${found.refusal.passing ? 'waits' : 'refuses'}: ${found.refusal.message}`;
  return `${found.marked ? 'uses' : 'adopts'} ${found.generation}`;
}

describe('a Redis is used only if its stored identity matches Postgres', () => {
  it('a Redis is used when Redis and Postgres name the same installation and generation', () =>
    expect(decided(named(2), 2, [node(2)])).toBe('uses 2'));
  it('after Postgres is restored to an earlier time, a Redis with a newer generation is still used', () =>
    expect(decided(named(3), 2)).toBe('uses 3'));
  it('a Redis is refused when it belongs to another installation', () => {
    for (const adoption of ['unless_used', 'never', 'rebuild'] as const)
      expect(decided(named(2, 'theirs'), 2, [], adoption)).toMatch(
        /^refuses: .*installation theirs, and .* ours/,
      );
  });
  it('a Redis is refused when it has an older generation than Postgres', () =>
    expect(decided(named(1), 2)).toMatch(/^refuses: this Redis is a former one/));
  it('a rebuild adopts a Redis of an older generation, unless nodes use the current Redis', () => {
    expect(decided(named(1), 2, [], 'rebuild')).toBe('adopts 3');
    expect(decided(named(1), 2, [node(2)], 'rebuild')).toMatch(/^refuses: .*1 node .* uses another one/);
  });
});

describe('an empty Redis is adopted only if no node uses another Redis', () => {
  it('the first node of an installation adopts its Redis', () => {
    expect(decided(none, 0)).toBe('adopts 1');
    expect(decided(none, 0, [node(0)], 'never')).toBe('adopts 1');
  });
  it('a new Redis is adopted when no node uses another Redis', () => {
    expect(decided(none, 1)).toBe('adopts 2');
    expect(decided(none, 1, [node(null), node(null)])).toBe('adopts 2');
  });
  it('a new Redis is refused while nodes use another Redis', () => {
    expect(decided(none, 1, [node(1), node(1), node(null)])).toMatch(/^waits: .*empty, and 2 nodes/);
    expect(decided(none, 1, [node(1, true)])).toMatch(/^waits: .*1 node /);
    expect(decided(none, 1, [node(1)], 'rebuild')).toMatch(/^waits: /);
  });
  it('a rebuild adopts a new Redis if the nodes cannot reach the previous Redis', () =>
    expect(decided(none, 1, [node(1, true)], 'rebuild')).toBe('adopts 2'));
  it('the current Redis is adopted again after it has lost its data', () =>
    expect(decided(none, 1, [node(1)], 'unless_used', true)).toBe('adopts 2'));
  it('a command never adopts a Redis if the installation has used another Redis before', () =>
    expect(decided(none, 1, [], 'never')).toMatch(/^refuses: this Redis is empty/));
});

describe('a Redis of an old version has no identity', () => {
  it('a Redis without an identity is adopted if its partition 0 was opened on this Postgres', () => {
    expect(decided(unnamed('run'), 0)).toBe('adopts 1');
    expect(decided(unnamed('run'), 0, [], 'never')).toBe('adopts 1');
  });
  it('a Redis without an identity that was opened on another Postgres is adopted only by a rebuild', () => {
    expect(decided(unnamed('other'), 0)).toMatch(/^refuses: .*does not name its installation/);
    expect(decided(unnamed('other'), 0, [], 'rebuild')).toBe('adopts 1');
  });
});

test('a master is refused if it contains a partition of another installation', async () => {
  const [cluster, database] = await Promise.all([freshCluster(), migratedDatabase()]);
  onTestFinished(async () => {
    await Promise.all([cluster.stop(), database.drop()]);
  });
  const keys = makeKeys(8);
  const refused: string[] = [];
  const identity = new Identity({
    ...{ url: database.url, keys, node: 'n', adoption: 'unless_used' },
    onRefused: (reason) => refused.push(reason),
    onAdopted: () => undefined,
    onError: () => undefined,
  });
  await identity.open(async () => undefined);
  const open = () =>
    new RedisCluster({
      seeds: cluster.cluster,
      name: 'test',
      slots: keys.partitions.slots,
      admit: (server, partition) => identity.admit(server, partition),
    });
  const first = open();
  await first.ready(ready_ms_max);
  await first.close();

  const client = openAnywhere(cluster);
  for (let partition = 0; partition < 8; partition++)
    await client.hset(keys.meta(partition), 'of', partition < 4 ? identity.id() : 'theirs');
  client.disconnect();
  const second = open();
  await expect(second.ready(3_000)).rejects.toThrow();
  await expect.poll(() => second.at(0)?.runId()).toBeTruthy();
  expect(second.at(7)?.runId()).toBeNull();
  await expect.poll(() => refused).toEqual([expect.stringContaining('belongs to the installation theirs')]);
  await second.close();
}, 180_000);
