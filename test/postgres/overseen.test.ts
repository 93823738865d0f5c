/** Tests with a real Postgres how many accounts are read when an administrator searches for accounts. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scanAccounts } from '../../src/postgres/accounts/overseen.js';
import { sqlOver } from '../../src/postgres/sql.js';
import { wordPattern } from '../../src/rules/search.js';
import { type FreshDatabase, migratedDatabase } from '../support/servers.js';

let database: FreshDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await migratedDatabase();
  client = new pg.Client(database.url);
  client.setTypeParser(20, Number);
  await client.connect();
  await client.query(
    `insert into users (id, username, first_name, deleted_at)
     select n, 'user_' || n, 'Even', case when n = 500008 then now() end from generate_series(500002, 500010, 2) n`,
  );
  await client.query(
    `insert into bots (id, owner_id, username, name, token_hmac, token_box)
     select n, 500002, 'n_' || n || '_bot', 'Odd', sha256(n::text::bytea), '' from generate_series(500003, 500009, 2) n`,
  );
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

const sql = sqlOver(
  async <T>(text: string, params: readonly unknown[] = []) =>
    (await client.query(text, [...params])).rows as T[],
);

async function scan(word: string, before: number, rows: number, limit = 100) {
  const { accounts, bottom, more } = await scanAccounts(sql, [wordPattern(word)], before, rows, limit);
  return { ids: accounts.map(({ id }) => id - 500_000), bottom: (bottom ?? 0) - 500_000, more };
}

test('a search reads a limited number of accounts, newest first, and the next search continues with older accounts', async () => {
  // Person 8 is deleted. The search reads this account but never returns it.
  expect(await scan('even', 600_000, 3)).toEqual({ ids: [10], bottom: 8, more: true });
  expect(await scan('even', 500_008, 3)).toEqual({ ids: [6], bottom: 5, more: true });
  expect(await scan('odd', 600_000, 4)).toEqual({ ids: [9, 7], bottom: 7, more: true });
});

test('a search returns a limited number of accounts', async () => {
  expect((await scan('5000', 600_000, 100, 3)).ids).toEqual([10, 9, 7]);
});

test('a search without a match reads the accounts and finds nothing', async () => {
  expect(await scan('nobody', 600_000, 4)).toEqual({ ids: [], bottom: 7, more: true });
});

test('a search reads accounts by their primary key, however many accounts exist', async () => {
  await client.query('analyze users');
  await client.query('set enable_seqscan = off');
  const plan = await client.query(
    'explain select id from users where id < 600000 order by id desc limit 20000',
  );
  expect(JSON.stringify(plan.rows)).toContain('users_pkey');
});
