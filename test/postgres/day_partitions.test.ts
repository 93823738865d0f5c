/**
 * Tests that failed deliveries are stored in one table partition per day. Each partition is created in advance, and
 * dropped at its age limit. An insert never fails because a partition is missing.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createMaintenance } from '../../src/journal/maintenance.js';
import { purgeTombstones } from '../../src/journal/purge.js';
import { limits } from '../../src/limits.js';
import {
  days_ahead,
  daysAhead,
  failuresByDay,
  keepDays,
  loadDaysState,
} from '../../src/postgres/day_partitions.js';
import { createPool, type Pool, statement } from '../../src/postgres/pool.js';
import { asDatabase, type Database } from '../../src/postgres/sql.js';
import { appendAttempts, loadAttempts, type NewAttempt } from '../../src/postgres/webhooks/attempts.js';
import { type FreshDatabase, migratedDatabase } from '../support/servers.js';

const day_ms = 86_400_000;
const age_ms = limits.delivery_attempt_age_ms_max;
let database: FreshDatabase;
let pool: Pool;
let db: Database;

beforeAll(async () => {
  database = await migratedDatabase();
  pool = createPool({ url: database.url, max: 8, name: 'test' });
  db = asDatabase(pool);
});
afterAll(async () => {
  await pool?.close();
  await database?.drop();
});

function makeSignal() {
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

/** Returns the day of each partition as an offset from today, in ascending order. Leaves out the default partition. */
async function days(): Promise<number[]> {
  const rows = await db.query<{ ago: number }>(
    `select to_date(right(c.relname, 8), 'YYYYMMDD') - (now() at time zone 'UTC')::date as ago from pg_inherits i
       join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'delivery_failures'::regclass and c.relname <> 'delivery_failures_default' order by 1`,
  );
  return rows.map(({ ago }) => ago);
}
const ahead = Array.from({ length: days_ahead + 1 }, (_, i) => i);
const dayName = (offset: number) =>
  `delivery_failures_${new Date(Date.now() + offset * day_ms).toISOString().slice(0, 10).replaceAll('-', '')}`;
let statements = 0;
const run = (text: string) => pool.query(statement(`test_${++statements}`, text));
const makeDay = (offset: number) =>
  run(`create table ${dayName(offset)} partition of delivery_failures
    for values from ('${new Date(Date.now() + offset * day_ms).toISOString().slice(0, 10)} 00:00+00')
      to ('${new Date(Date.now() + (offset + 1) * day_ms).toISOString().slice(0, 10)} 00:00+00')`);
const count = async (from: string) =>
  (await db.query<{ n: number }>(`select count(*)::int as n from ${from}`))[0]?.n;

const attempt = (updateId: number, delivered: boolean, at = Date.now(), bot = 7): NewAttempt => ({
  ...{ bot, updateId, at, delivered, status: delivered ? 200 : 500, error: delivered ? null : 'HTTP 500' },
  ...{ latencyMs: 3, answer: 'said', tries: 1, nextTryAt: null, dead: null, record: null, slot: 0 },
});
const append = (...attempts: NewAttempt[]) =>
  appendAttempts(db, attempts, new Map([[7, { delivered: 0, failed: 0, dead: 0, unkept: 0 }]]));
const everything = { ofOwner: false, updateId: null, delivered: null, status: null };
const shown = async (filter = {}) =>
  (await loadAttempts(db, 7, { ...everything, ...filter }, Number.MAX_SAFE_INTEGER, 100)).map(
    ({ update_id, delivered }) => `${update_id} ${delivered}`,
  );

afterEach(async () => {
  for (const offset of await days()) await run(`drop table ${dayName(offset)}`);
  await run('truncate delivery_failures, delivery_attempts, delivery_counts');
  await run("delete from installation where name = 'tombstones_purged_at'");
});

test('if several processes create the same daily partitions simultaneously, each partition is created once', async () => {
  for (let round = 0; round < 10; round++) {
    for (const offset of await days()) await run(`drop table ${dayName(offset)}`);
    const done = await Promise.all(Array.from({ length: 5 }, () => keepDays(pool, age_ms)));
    expect(done.reduce((sum, { made }) => sum + made, 0)).toBe(ahead.length);
    expect(await days()).toEqual(ahead);
  }
  expect(await daysAhead(pool)).toBe(days_ahead);
  expect(await keepDays(pool, age_ms)).toEqual({ made: 0, dropped: 0, held: 0 });
  await run(`drop table ${dayName(2)}`);
  expect(await daysAhead(pool)).toBe(1);
});

test('the state of a table shows which days have a partition, and how many partitions have expired', async () => {
  const state = () => loadDaysState(pool, failuresByDay, age_ms);
  expect(await state()).toEqual({ today: false, ahead: 0, overdue: 0 });
  await keepDays(pool, age_ms);
  for (const offset of [-9, -7]) await makeDay(offset);
  expect(await state()).toEqual({ today: true, ahead: days_ahead, overdue: 1 });
  await run(`drop table ${dayName(0)}`);
  await run(`drop table ${dayName(2)}`);
  expect(await state()).toEqual({ today: false, ahead: 1, overdue: 1 });
});

test('failures and successes of deliveries are listed together in the order of the attempts', async () => {
  await keepDays(pool, age_ms);
  await append(attempt(1, false), attempt(1, true), attempt(2, false));
  // Writes a row in the form that earlier versions of the program write.
  await run(`insert into delivery_attempts (bot_id, update_id, at, delivered, latency_ms, answer, tries)
    values (7, 2, now(), false, 1, '', 2)`);
  await append(attempt(2, true), attempt(3, false), attempt(9, false, Date.now(), 8));
  expect(await shown()).toEqual(['3 false', '2 true', '2 false', '2 false', '1 true', '1 false']);
  expect(await shown({ delivered: false })).toEqual(['3 false', '2 false', '2 false', '1 false']);
  expect(await shown({ updateId: 1 })).toEqual(['1 true', '1 false']);
  expect(await shown({ status: 200 })).toEqual(['2 true', '1 true']);
  expect(await count(dayName(0))).toBe(4);
  expect(await count('delivery_failures_default')).toBe(0);
});

test('a failed delivery is stored in the default partition if its day has no partition', async () => {
  await append(attempt(1, false), attempt(2, false, Date.now() + 2 * day_ms));
  expect(await count('delivery_failures_default')).toBe(2);
  expect(await keepDays(pool, age_ms)).toEqual({ made: 2, dropped: 0, held: 0 });
  expect(await days()).toEqual([1, 3]);
  expect(await daysAhead(pool)).toBe(1);
  expect(await shown()).toEqual(['2 false', '1 false']);
  // Rows in the default partition are purged one by one, by their age.
  await run(`update delivery_failures_default set at = at - interval '8 days' where update_id = 1`);
  expect(await purgeTombstones(pool)).toBe(1);
  expect(await shown()).toEqual(['2 false']);
});

test('a partition is dropped after its retention time', async () => {
  for (const offset of [-9, -8, -7, -1]) await makeDay(offset);
  await append(...[-9, -8, -7, -1].map((offset) => attempt(-offset, false, Date.now() + offset * day_ms)));
  expect(await keepDays(pool, age_ms)).toEqual({ made: ahead.length, dropped: 2, held: 0 });
  expect(await days()).toEqual([-7, -1, ...ahead]);
  expect(await shown()).toEqual(['1 false', '7 false']);
  await append(attempt(10, false, Date.now() - 9 * day_ms));
  expect(await shown()).toEqual(['10 false', '1 false', '7 false']);
  // The age limit of messages, here three days, also applies to failed deliveries.
  expect(await keepDays(pool, 3 * day_ms)).toEqual({ made: 0, dropped: 1, held: 0 });
});

async function holdTable(): Promise<() => Promise<void>> {
  const [reads, mayEnd] = [makeSignal(), makeSignal()];
  const reading = pool.transaction(async (tx) => {
    await tx.query(statement('test_holds', 'select from delivery_failures'));
    reads.give();
    await mayEnd.given;
  });
  await reads.given;
  return () => {
    mayEnd.give();
    return reading;
  };
}

test('a daily partition is dropped later if a long transaction uses the table', async () => {
  await keepDays(pool, age_ms);
  await makeDay(-9);
  const letGo = await holdTable();
  try {
    expect(await keepDays(pool, age_ms)).toEqual({ made: 0, dropped: 0, held: 0 });
    await append(attempt(1, false));
  } finally {
    await letGo();
  }
  expect(await keepDays(pool, age_ms)).toEqual({ made: 0, dropped: 1, held: 0 });
});

test('daily partitions that cannot be created are reported', async () => {
  const errors: string[] = [];
  const maintenance = createMaintenance({
    pool,
    holds: () => ({ control: true, sharded: true }),
    onError: ({ message }) => void errors.push(message),
  });
  const letGo = await holdTable();
  try {
    expect(maintenance.stats().daysAhead).toBeNaN();
    maintenance.start();
    await expect.poll(() => errors).toHaveLength(1);
    expect(errors[0]).toMatch(/held by a transaction: 4 days wait/);
    expect(maintenance.stats().daysAhead).toBe(0);
  } finally {
    await letGo();
  }
  await expect.poll(() => maintenance.stats().daysAhead).toBe(days_ahead);
  maintenance.stop();
  expect(await days()).toEqual(ahead);
  expect(errors).toHaveLength(1);
});

test('a table that has the name of a missing daily partition is reported', async () => {
  await run(`create table ${dayName(3)} (other int)`);
  await expect(keepDays(pool, age_ms)).rejects.toThrow(/already exists/);
  expect(await days()).toEqual([0, 1, 2]);
  await run(`drop table ${dayName(3)}`);
});

test('only the newest failures of a bot with many failures are stored', async () => {
  await keepDays(pool, age_ms);
  await makeDay(-1);
  const many = limits.delivery_failures_kept + 30;
  await run(`insert into delivery_failures (bot_id, id, update_id, at, latency_ms, answer, tries)
    select b, n, n, now() - (${many} - n) * interval '4 seconds', 1, '', 1
      from generate_series(1, ${many}) n, generate_series(7, 7) b`);
  await run(`insert into delivery_failures (bot_id, id, update_id, at, latency_ms, answer, tries)
    values (8, 1, 1, now(), 1, '', 1)`);
  await run(`insert into delivery_counts (bot_id, failed) values (7, ${many}), (8, 1)`);
  expect(await purgeTombstones(pool)).toBe(30);
  const [left] = await db.query(
    'select count(*)::int as n, min(update_id)::int as oldest from delivery_failures where bot_id = 7',
  );
  expect(left).toEqual({ n: limits.delivery_failures_kept, oldest: 31 });
});
