import { expect, test } from 'vitest';
import { purgeTombstones } from '../../src/journal/purge.js';
import { limits } from '../../src/limits.js';
import { createPool, statement } from '../../src/postgres/pool.js';
import { migratedDatabase } from '../support/servers.js';

test('the purge keeps only the newest dead letters of each bot', async ({ onTestFinished }) => {
  const database = await migratedDatabase();
  onTestFinished(() => database.drop());
  const pool = createPool({ url: database.url, max: 2, name: 'test' });
  onTestFinished(() => pool.close());
  const insert = statement(
    'test_dead_letters',
    `insert into dead_updates (bot_id, update_id, version, record, created_at)
     select $1::bigint, n, n, ''::bytea, now() - $3::int * interval '1 day' from generate_series(1, $2::bigint) n`,
  );
  const surplus = limits.dead_updates_per_bot_max + 1_500;
  for (const bot of [
    [7, surplus, 0],
    [8, 5, 8],
    [9, 5, 6],
  ])
    await pool.query(insert, bot);
  await purgeTombstones(pool);
  const counts = statement(
    'test_dead_counts',
    'select bot_id, count(*) as count, min(update_id) as first from dead_updates where bot_id in (7, 8, 9) group by 1 order by 1',
  );
  const { rows } = await pool.query<{ bot_id: number; count: number; first: number }>(counts);
  expect(rows.map((row) => [row.bot_id, row.count, row.first])).toEqual([
    [7, surplus - 1_500, 1_501],
    [9, 5, 1],
  ]);
});
