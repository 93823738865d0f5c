import { createServer } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { bigintArray, byteaArray } from '../../src/postgres/arrays.js';
import { createPool, isDataError, isUnavailable, type Pool, statement } from '../../src/postgres/pool.js';
import { asDatabase } from '../../src/postgres/sql.js';
import { eventually } from '../journal/support.js';
import { freshDatabase } from '../support/servers.js';

let url: string;
let pool: Pool;

beforeAll(async () => {
  url = (await freshDatabase()).url;
  pool = createPool({ url, max: 4, name: 'test' });
  await pool.query(statement('make', 'create table counters (id bigint primary key, n bigint not null)'));
});
afterAll(async () => {
  await pool?.close();
});

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => {
      throw new Error('expected a rejection');
    },
    (error: unknown) => error,
  );

describe('the pool runs statements and transactions', () => {
  it('the pool reads bigint values and arrays as numbers', async () => {
    const { rows, count } = await pool.query(
      statement(
        'bigints',
        "select 9007199254740991::bigint as a, '{-1,2}'::bigint[] as b, '{}'::bigint[] as c",
      ),
    );
    expect(rows).toEqual([{ a: Number.MAX_SAFE_INTEGER, b: [-1, 2], c: [] }]);
    expect(count).toBe(1);
  });

  it('the pool sends arrays in binary form without changing values', async () => {
    const echo = statement('echo', 'select $1::bigint[] as ints, $2::bytea[] as bytes');
    const integers = fc.array(fc.maxSafeInteger(), { maxLength: 20 });
    const blobs = fc.array(fc.option(fc.uint8Array({ maxLength: 40 })), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(integers, blobs, async (ints, bytes) => {
        const buffers = bytes.map((b) => (b === null ? null : Buffer.from(b)));
        const { rows } = await pool.query(echo, [bigintArray(ints), byteaArray(buffers)]);
        expect(rows).toEqual([{ ints: ints.map((n) => n + 0), bytes: buffers }]);
      }),
      { numRuns: 60 },
    );
    expect(() => bigintArray([2 ** 53])).toThrow(RangeError);
  });

  it('the pool prepares a statement once per connection', async () => {
    const one = createPool({ url, max: 1, name: 'prepare' });
    const named = statement('named', 'select $1::int as n');
    for (let i = 0; i < 3; i++) await one.query(named, [i]);
    const { rows } = await one.query(
      statement(
        'prepared',
        "select name, generic_plans + custom_plans as runs from pg_prepared_statements where name = 'named'",
      ),
    );
    expect(rows).toEqual([{ name: 'named', runs: 3 }]);
    await one.close();
  });

  it('the pool rolls back a failed transaction and keeps the connection usable', async () => {
    const one = createPool({ url, max: 1, name: 'rollback' });
    const insert = statement('insert', 'insert into counters values ($1, $2)');
    await expect(
      one.transaction(async (tx) => {
        await tx.query(insert, [1, 1]);
        throw new Error('changed my mind');
      }),
    ).rejects.toThrow('changed my mind');
    expect((await one.query(statement('count', 'select * from counters'))).count).toBe(0);
    await one.close();
  });

  it('the pool applies a batch completely or not at all', async () => {
    const one = createPool({ url, max: 1, name: 'batch' });
    const insert = statement('insert', 'insert into counters values ($1, $2)');
    const all = statement('all', 'select id, n from counters order by 1');
    const call = (id: number | string) => ({ statement: insert, values: [id, 1] });
    await expect(one.batch([call(1), call(2), call(1), call(3)])).rejects.toThrow(/counters_pkey/);
    await expect(one.batch([call('no number'), call(3)])).rejects.toThrow(/bigint/);
    expect((await one.query(all)).rows).toEqual([]);
    await one.batch([call(1), call(2)]);
    expect((await pool.query(all)).rows).toEqual([
      { id: 1, n: 1 },
      { id: 2, n: 1 },
    ]);
    await one.query(statement('clear', 'delete from counters'));
    await one.close();
  });

  it('the pool runs a batch of prepared statements in one transaction, and returns the rows of the last statement', async () => {
    const one = createPool({ url, max: 1, name: 'prepared' });
    const insert = statement('insert_now', 'insert into counters values ($1, 1) returning id');
    const rows = statement(
      'rows',
      `select count(distinct xmin::text)::int as transactions, array_agg(id order by id) as ids, $1::bytea as raw,
         $2::text as nothing from counters`,
    );
    const batch = (from: number, raw: unknown) => [
      { statement: insert, values: [from] },
      { statement: insert, values: [String(from + 1)] },
      { statement: rows, values: [raw, null] },
    ];
    const circle: { self?: unknown } = {};
    circle.self = circle;
    for (const from of [1, 3]) {
      await one.query(statement('clear', 'delete from counters'));
      const found = await one.batch(batch(from, Buffer.from([0, 255])));
      expect(found).toEqual([
        { transactions: 1, ids: [from, from + 1], raw: Buffer.from([0, 255]), nothing: null },
      ]);
      // This batch fails before anything is sent. The next query must not commit any statement of this batch.
      await expect(one.batch(batch(from + 10, circle))).rejects.toThrow(/circular/i);
      expect(await one.batch([{ statement: insert, values: [from + 2] }])).toEqual([{ id: from + 2 }]);
      expect((await one.query(statement('ids', 'select id from counters order by 1'))).rows).toEqual(
        [from, from + 1, from + 2].map((id) => ({ id })),
      );
    }
    await one.query(statement('clear', 'delete from counters'));
    await one.close();
  });

  it('the pool applies a transaction once even after a serialisation failure', async () => {
    await pool.query(statement('seed', 'insert into counters values (7, 0)'));
    const level = statement('level', 'set transaction isolation level repeatable read');
    const read = statement('read', 'select n from counters where id = 7');
    const write = statement('write', 'update counters set n = $1 where id = 7');
    let arrived = 0;
    let meet = () => {};
    const both = new Promise<void>((resolve) => {
      meet = resolve;
    });
    const raise = () =>
      pool.transaction(async (tx) => {
        await tx.query(level);
        const { rows } = await tx.query<{ n: number }>(read);
        if (++arrived === 2) meet();
        await both;
        await tx.query(write, [(rows[0]?.n ?? 0) + 1]);
      });
    await Promise.all([raise(), raise()]);
    expect((await pool.query(read)).rows).toEqual([{ n: 2 }]);
    expect(pool.retries()).toBe(1);
  });

  it('a statement that fails with a deadlock is retried, and fails as unavailable if all retries fail', async () => {
    await pool.query(statement('tries', 'create sequence tries'));
    const make = `create function fail(times int) returns int language plpgsql as $$ begin
      if nextval('tries') <= times then raise exception using errcode = '40P01'; end if;
      return 1; end $$`;
    await pool.query(statement('make_fail', make));
    const twice = await pool.query(statement('twice', 'select fail(2) as done'));
    expect(twice.rows).toEqual([{ done: 1 }]);
    const always = failure(asDatabase(pool).query('select fail(1000) as done'));
    expect(await always).toMatchObject({ kind: 'unavailable' });
  });

  it('the pool distinguishes data errors from an unavailable database', async () => {
    const range = await failure(pool.query(statement('range', 'select $1::int'), [2 ** 40]));
    const unique = await failure(
      pool.query(statement('unique', 'insert into counters values (7, 0), (7, 1)'), []),
    );
    const table = await failure(pool.query(statement('table', 'select * from nowhere')));
    expect([range, unique, table].map(isDataError)).toEqual([true, true, false]);
    expect([range, unique, table].map(isUnavailable)).toEqual([false, false, false]);
    expect(isUnavailable(new TypeError('x is undefined'))).toBe(false);
  });

  it('the pool fails quickly if the port is closed or the server does not answer', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await new Promise((listening) => silent.once('listening', listening));
    const ports = [await freePort(), (silent.address() as { port: number }).port];
    for (const port of ports) {
      const away = createPool({ url: `postgres://x:y@127.0.0.1:${port}/none`, max: 2, name: 'away' });
      const start = performance.now();
      expect(isUnavailable(await failure(away.query(statement('one', 'select 1'))))).toBe(true);
      expect(isUnavailable(await failure(away.transaction(async () => {})))).toBe(true);
      expect(performance.now() - start).toBeLessThan(20_000);
      await away.close();
    }
    silent.close();
  });

  it('the pool replaces connections that Postgres has closed, whether they were idle or in use', async () => {
    const errors: Error[] = [];
    const cut = createPool({ url, max: 2, name: 'cut', onError: (error) => errors.push(error) });
    const end = statement(
      'end',
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'petrel-cut'",
    );
    const pause = statement('pause', 'select pg_sleep(9)');
    const busy = failure(cut.transaction((tx) => tx.query(pause)));
    await cut.query(statement('one', 'select 1'));
    const states = statement(
      'states',
      "select query from pg_stat_activity where application_name = 'petrel-cut' order by query like '%sleep%'",
    );
    await eventually('one connection is idle, the other is in use', async () => {
      const { rows } = await pool.query<{ query: string }>(states);
      return rows.length === 2 && /sleep/.test(rows[1]?.query ?? '');
    });
    expect((await pool.query(end)).count).toBe(2);
    expect(isUnavailable(await busy)).toBe(true);
    // After Postgres has closed an idle connection, the pool may still hand out this connection until it gets the close
    // event of the connection.
    await eventually('the pool knows that the idle connection was closed', () => errors.length > 0);
    expect((await cut.query(statement('one', 'select 1'))).count).toBe(1);
    await cut.close();
  });
});
