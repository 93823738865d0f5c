import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadAcquaintances } from '../../src/postgres/chats/members.js';
import { sqlOver } from '../../src/postgres/sql.js';
import { type FreshDatabase, migratedDatabase } from '../support/servers.js';

let database: FreshDatabase;
let client: pg.Client;
const bot = 900;
const members = 20_000;

beforeAll(async () => {
  database = await migratedDatabase();
  client = new pg.Client(database.url);
  await client.connect();
  await client.query('set session_replication_role = replica');
  // Creates one large group with the bot, and twenty people. Each person is in five small groups.
  await client.query(
    "insert into chats (id, type, title, creator_id) select -i, 'group', 'x', 1 from generate_series(1, 101) i",
  );
  const add = (rows: string, ...values: unknown[]) =>
    client.query(
      `insert into chat_members (chat_id, member_id, status, is_bot, version) select ${rows}`,
      values,
    );
  await add(`-101, 100000 + i, 'member', false, 1 from generate_series(1, ${members}) i`);
  await add(`-101, ${bot}, 'member', true, 1`);
  await add(
    "-(p * 5 + i), 1000 + p, 'creator', false, 1 from generate_series(0, 19) p, generate_series(1, 5) i",
  );
  await client.query('analyze');
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

interface Plan {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

const rowsRead = (plan: Plan): number =>
  (plan['Relation Name'] === 'chat_members'
    ? (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']
    : 0) + (plan.Plans ?? []).reduce((sum, each) => sum + rowsRead(each), 0);

test('the query that checks whether two people share a chat does not read the member lists of chats', async () => {
  const people = Array.from({ length: 20 }, (_, p) => 1_000 + p);
  let read = 0;
  const explained = sqlOver(async (text, params = []) => {
    const { rows } = await client.query(`explain (analyze, format json) ${text}`, [...params]);
    read = rowsRead(rows[0]['QUERY PLAN'][0].Plan);
    return [];
  });
  await loadAcquaintances(explained, bot, people);
  expect(read).toBeGreaterThanOrEqual(20 * 5);
  expect(read).toBeLessThanOrEqual(2 * 20 * 5);
});
