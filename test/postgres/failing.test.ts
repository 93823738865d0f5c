/** Tests that Postgres finds failing webhooks without reading all webhooks. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadFailingFor } from '../../src/postgres/bots/ranking.js';
import { sqlOver } from '../../src/postgres/sql.js';
import { type FreshDatabase, migratedDatabase } from '../support/servers.js';

let database: FreshDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await migratedDatabase();
  client = new pg.Client(database.url);
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

test('a query for failing webhooks uses an index, however many webhooks exist', async () => {
  await client.query('set enable_seqscan = off');
  const explained = sqlOver(
    async <T>(text: string, params: readonly unknown[] = []) =>
      (await client.query(`explain ${text}`, [...params])).rows as T[],
  );
  const plan = await loadFailingFor(explained, 60_000, 20);
  expect(JSON.stringify(plan)).toContain('webhooks_failing_since_idx');
  const { rows } = await client.query(
    'explain select 1 from webhooks where url_box is not null and failing_since is not null',
  );
  expect(JSON.stringify(rows)).toContain('webhooks_failing_since_idx');
});
