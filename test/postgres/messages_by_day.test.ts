/**
 * Tests the daily partitions of the table `messages`. A message is in the partition of the day on which it was
 * recorded. Covers writes, deletions, purges, and the migration that moves older messages into the partitions.
 */
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { JournalEntry } from '../../src/journal/batch.js';
import { purgeTombstones } from '../../src/journal/purge.js';
import { prepareBatch, writeBatch } from '../../src/journal/write.js';
import { loadMessages, loadNewestMessages, newestMessage } from '../../src/postgres/chats/chats.js';
import { day_ms, daysAhead, keepDays, messagesByDay, readSpans } from '../../src/postgres/day_partitions.js';
import { migrate } from '../../src/postgres/migrate.js';
import { createPool, type Pool, statement } from '../../src/postgres/pool.js';
import { asDatabase, type Database } from '../../src/postgres/sql.js';
import { messageKinds, packMessage } from '../../src/store/core/codec.js';
import { freshDatabase } from '../support/servers.js';

const schema_before = 33;
const today = Math.floor(Date.now() / day_ms);
const dateOf = (day: number) => new Date(day * day_ms).toISOString().slice(0, 10);
const messages = messagesByDay(30);

let database: Awaited<ReturnType<typeof freshDatabase>>;
let pool: Pool;
let db: Database;
let statements = 0;
const run = (text: string) => pool.query(statement(`test_${++statements}`, text));

const record = (version: number, day: number, text: string | null = `text ${version}`) =>
  packMessage({
    ...{ version, date: day * 86_400 + 43_200, editedAt: 0, sender: 7, flags: 0, post: 0 },
    kind: text === null ? messageKinds.deleted : messageKinds.text,
    content: text === null ? {} : { text },
    ...{ markup: null, origin: {} },
  });
const entry = (id: number, version: number, image: Buffer): JournalEntry => ({
  ...{ partition: 1, version, entity: `msg:12.5:${id}`, image, state: '' },
});
const write = (...entries: JournalEntry[]) =>
  writeBatch(
    pool,
    prepareBatch([{ partition: 1, entries, last: entries.at(-1)?.version ?? 0, whole: true }], new Map()),
    (_, reason) => expect.unreachable(reason),
  );
/** Returns the table partition and the version of each message. The version of a tombstone is negative. */
async function rows(): Promise<string[]> {
  const found = await db.query<{ at: string; id: number; version: number; gone: boolean }>(
    `select tableoid::regclass::text as at, message_id as id, version, record is null as gone from messages order by 2`,
  );
  return found.map(({ at, id, version, gone }) => `${at.slice(9)} ${id} ${gone ? '-' : ''}${version}`);
}
const compact = (day: number) => dateOf(day).replaceAll('-', '');
const name = (from: number, to: number) => `${compact(from)}_${compact(to)}`;
const makeSpan = (from: number, to: number) =>
  run(`create table messages_${name(from, to)} partition of messages
    for values from ('${dateOf(from)}') to ('${dateOf(to)}')`);

beforeAll(async () => {
  database = await freshDatabase();
  await migrate(database.url);
  pool = createPool({ url: database.url, max: 8, name: 'test' });
  db = asDatabase(pool);
});
afterAll(async () => {
  await pool?.close();
  await database?.drop();
});
beforeEach(async () => {
  for (const span of (await readSpans(pool, messages)).spans) await run(`drop table ${span.name}`);
  await run('truncate messages, partitions, chat_sequences, installation');
});

test('the partitions for messages of future days are created once and leave no gaps', async () => {
  const done = await Promise.all(Array.from({ length: 4 }, () => keepDays(pool, Infinity, messages)));
  expect(done.reduce((sum, { made }) => sum + made, 0)).toBeLessThanOrEqual(2);
  await keepDays(pool, Infinity, messages);
  const { spans } = await readSpans(pool, messages);
  expect(spans.map(({ from, to }) => [from - today, to - today])).toEqual([
    [0, 3],
    [3, 6],
  ]);
  expect(await daysAhead(pool, messages)).toBe(3);
  // A changed setting applies only to partitions that do not exist yet.
  await run(`drop table ${spans[1]?.name}`);
  await keepDays(pool, Infinity, messagesByDay(undefined));
  expect((await readSpans(pool, messages)).spans.at(-1)).toMatchObject({ from: today + 3, to: today + 183 });
});

test("all versions of a message are stored, read and deleted in the partition of the message's day", async () => {
  await makeSpan(today - 4, today - 1);
  await keepDays(pool, Infinity, messages);
  await write(entry(1, 1, record(1, today - 2)), entry(2, 2, record(2, today)));
  await write(entry(1, 3, record(3, today - 2)), entry(2, 4, record(4, today, null)));
  const [old, now] = [name(today - 4, today - 1), name(today, today + 3)];
  expect(await rows()).toEqual([`${old} 1 3`, `${now} 2 -4`]);
  // Writes older versions of the same messages, which must change nothing.
  await write(entry(1, 1, record(1, today - 2)), entry(2, 2, record(2, today)));
  expect(await rows()).toEqual([`${old} 1 3`, `${now} 2 -4`]);
  expect((await loadMessages(db, 12, 5, [1, 2, 3])).map((row) => row.record?.length ?? 0)).toEqual([
    record(3, today - 2).length,
    0,
  ]);
  expect(await newestMessage(db, 12, 5, 9)).toBe(1);
  expect((await loadNewestMessages(db, 12, 5, [1, 2], 1_000)).length).toBe(2);
});

test('a tombstone without a day deletes its message in any partition, even if the same batch contains the message', async () => {
  await makeSpan(today - 4, today - 1);
  await keepDays(pool, Infinity, messages);
  const nothing = Buffer.alloc(0);
  await write(entry(1, 1, record(1, today - 2)));
  await write(
    entry(1, 2, nothing),
    entry(2, 3, record(3, today - 2)),
    entry(2, 4, nothing),
    entry(3, 5, nothing),
  );
  const old = name(today - 4, today - 1);
  // The third message gets no tombstone, because no version of this message was ever written.
  expect(await rows()).toEqual([`${old} 1 -2`, `${old} 2 -4`]);
  await write(entry(1, 1, record(1, today - 2)), entry(2, 3, record(3, today - 2)));
  expect(await rows()).toEqual([`${old} 1 -2`, `${old} 2 -4`]);
});

test('a message is stored in the default partition if its day has no partition', async () => {
  await write(entry(1, 1, record(1, today - 400)), entry(2, 2, record(2, today)));
  expect(await rows()).toEqual(['default 1 1', 'default 2 2']);
  await keepDays(pool, Infinity, messages);
  const { spans } = await readSpans(pool, messages);
  expect(spans[0]).toMatchObject({ from: today + 1 });
  await write(entry(2, 3, record(3, today)), entry(3, 4, record(4, today + 1)));
  expect(await rows()).toEqual(['default 1 1', 'default 2 3', `${name(today + 1, today + 4)} 3 4`]);
});

test('a purge removes the tombstones of one partition and leaves the rows of other partitions', async () => {
  await makeSpan(today - 4, today - 1);
  await keepDays(pool, Infinity, messages);
  // Both rows are the first rows of their partitions and have the same ctid. A purge by ctid alone would delete both.
  await write(entry(1, 1, record(1, today - 2)), entry(2, 2, record(2, today, null)));
  await run(`update messages set deleted_at = now() - interval '2 days' where message_id = 2`);
  await run(`vacuum full messages_${name(today, today + 3)}`);
  expect(await purgeTombstones(pool)).toBe(1);
  expect(await rows()).toEqual([`${name(today - 4, today - 1)} 1 1`]);
});

test('when an older installation is migrated, the day of each message comes from its record', async () => {
  const old = await freshDatabase();
  const client = new pg.Client({ connectionString: old.url });
  try {
    await migrate(old.url, () => {}, undefined, schema_before);
    await client.connect();
    const put = (id: number, version: number, bytes: Buffer | null) =>
      client.query('insert into messages values (12, 5, $1, $2, $3, $4)', [
        id,
        version,
        bytes,
        bytes === null ? new Date() : null,
      ]);
    // These versions cover every encoded length that a version can have in the header of a record.
    const versions = [5, 200, 60_000, 3_000_000_000, 2 ** 41];
    for (const [i, version] of versions.entries())
      await put(i + 1, version, record(version, today - i * 100));
    await put(6, 9, null);
    await put(7, 9, Buffer.from('x'));
    // This message was written while the clock was two days ahead.
    await put(8, 9, record(9, today + 2));

    await client.query('create publication other for table messages');
    await expect(migrate(old.url)).rejects.toThrow(/messages are being replicated/);
    await client.query('drop publication other');

    // The migration waits if the table is in use, and can be repeated after a failure.
    const holder = new pg.Client({ connectionString: old.url });
    await holder.connect();
    await holder.query('begin');
    await holder.query('select from messages');
    const done = migrate(old.url);
    await expect
      .poll(async () => (await client.query('select from pg_locks where not granted')).rowCount)
      .toBeGreaterThan(0);
    await holder.query('commit');
    await holder.end();
    await done;

    const { rows: found } = await client.query(
      `select tableoid::regclass::text as at, message_id::int as id, version::text, to_char(day, 'YYYY-MM-DD') as day, record
         from messages order by message_id`,
    );
    expect(found.map(({ at, day }) => [at, day])).toEqual(
      [0, 100, 200, 300, 400, today, today, -2].map((ago) => [
        `messages_until_${compact(today + 3)}`,
        dateOf(today - ago),
      ]),
    );
    expect(found.slice(0, 5).map(({ version }) => Number(version))).toEqual(versions);
    expect(found[0].record).toEqual(record(5, today));
    const { rows: indexes } = await client.query(
      'select count(*)::int as n from pg_index where indrelid = $1::regclass and indisvalid',
      [found[0].at],
    );
    expect(indexes[0].n).toBe(2);
  } finally {
    await client.end();
    await old.drop();
  }
});
