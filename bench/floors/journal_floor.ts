/**
 * Runs the loop with which the flusher is compared. The loop only writes prepared rows, in batches of the flusher's
 * size, one transaction per batch. It does not read, check or trim a journal.
 */
import { limits } from '../../src/limits.js';
import { bigintArray, byteaArray } from '../../src/postgres/arrays.js';
import { createPool, type Pool, statement } from '../../src/postgres/pool.js';
import { messageDay } from '../../src/store/core/codec.js';

export type JournalRow = readonly [
  chat: number,
  user: number,
  message: number,
  version: number,
  record: string,
];

export interface JournalFloorTask {
  readonly databaseUrl: string;
  readonly rows: readonly JournalRow[];
}

const columns = ['chat_id', 'user_id', 'message_id', 'version'];
const upsert = statement(
  'bench_journal',
  `insert into messages as stored (${columns.join(', ')}, day, record)
   select ${columns.join(', ')}, date '1970-01-01' + day::int, record
     from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[])
       as rows (${columns.join(', ')}, day, record)
   on conflict (chat_id, user_id, message_id, day) do update set version = excluded.version, record = excluded.record
   where stored.version < excluded.version`,
);

async function writeAll(pool: Pool, rows: readonly (readonly [...number[], Buffer])[]): Promise<number> {
  const began = performance.now();
  const step = limits.journal_batch_entries_max;
  for (let from = 0; from < rows.length; from += step) {
    const batch = rows.slice(from, from + step);
    const values = [
      ...columns.map((_, column) => bigintArray(batch.map((row) => row[column] as number))),
      bigintArray(batch.map((row) => messageDay(row[columns.length] as Buffer))),
      byteaArray(batch.map((row) => row[columns.length] as Buffer)),
    ];
    await pool.transaction((tx) => tx.query(upsert, values));
  }
  return performance.now() - began;
}

process.on('message', async ({ databaseUrl, rows }: JournalFloorTask) => {
  const pool = createPool({ url: databaseUrl, max: 1, name: 'bench', onError: () => undefined });
  const ready = rows.map(
    (row) => [...row.slice(0, 4), Buffer.from(row[4], 'base64')] as [...number[], Buffer],
  );
  await writeAll(pool, []);
  await pool.query(statement('bench_ready', 'select 1'));
  const ms = await writeAll(pool, ready);
  await pool.close();
  process.send?.({ ms });
});
process.once('disconnect', () => process.exit(0));
