/** Tests that a move of partitions stays unchanged if an operator gives a command that does not apply to the move. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { movePartitions, undoMove } from '../../src/operations/shard_moves.js';
import { createPool, type Pool, statement } from '../../src/postgres/pool.js';
import type { Backends } from '../../src/processes/backends.js';
import { systemRandom } from '../../src/random.js';
import { systemTime } from '../../src/time.js';
import { type FreshDatabase, migratedDatabase } from '../support/servers.js';

let database: FreshDatabase;
let pool: Pool;

beforeAll(async () => {
  database = await migratedDatabase();
  pool = createPool({ url: database.url, max: 2, name: 'test' });
});
afterAll(async () => {
  await pool?.close();
  await database?.drop();
});

let statements = 0;
const run = async (text: string) => (await pool.query(statement(`test_${++statements}`, text))).rows;
const load = () => run('select runner, step, renewed_at from shard_moves');
const backends = () =>
  ({
    pool,
    random: systemRandom,
    time: systemTime,
    shards: { all: [{ id: 1 }, { id: 2 }] },
  }) as unknown as Backends;
const say = () => undefined;

beforeEach(async () => {
  await run('delete from shard_moves');
  await run(`insert into shard_moves (partitions, source, target, step, runner, renewed_at)
    values ('{0,1}', 1, 2, 'copy', 'stopped', now() - interval '1 minute')`);
});

test.each([
  [[0, 1], 1],
  [[0], 2],
])('a move of the partitions %j to the shard %i does not claim another move', async (partitions, target) => {
  const before = await load();
  await expect(movePartitions(backends(), partitions, target, { say })).rejects.toThrow(
    'a move of partitions 0-1 to DATABASE_SHARDS 2 is unfinished: finish it with "petrel shards move 0-1 2"',
  );
  expect(await load()).toEqual(before);
});

test('an undo is refused and changes nothing if the move can no longer be undone', async () => {
  await run("update shard_moves set step = 'switch'");
  const before = await load();
  await expect(undoMove(backends(), say)).rejects.toThrow('already has these partitions');
  expect(await load()).toEqual(before);
});

test('a command is refused and changes nothing if DATABASE_SHARDS lacks the source of the move', async () => {
  await run('update shard_moves set source = 3');
  const before = await load();
  await expect(movePartitions(backends(), [0, 1], 2, { say })).rejects.toThrow(
    'DATABASE_SHARDS does not name 3',
  );
  await expect(undoMove(backends(), say)).rejects.toThrow('DATABASE_SHARDS does not name 3');
  expect(await load()).toEqual(before);
});
