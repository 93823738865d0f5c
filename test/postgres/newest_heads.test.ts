/** Tests with a real Postgres how the newest message of a chat is found. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadNewestHeads } from '../../src/postgres/chats/chats.js';
import { sqlOver } from '../../src/postgres/sql.js';
import { type FreshDatabase, migratedDatabase } from '../support/servers.js';

let database: FreshDatabase;
let client: pg.Client;
let statements = 0;

const sql = sqlOver(async <T>(text: string, params: readonly unknown[] = []) => {
  statements++;
  return (await client.query(text, [...params])).rows as T[];
});

/**
 * Stores the messages of a chat. `ages` lists the age of each message in days. A null stands for a message of today
 * that was deleted.
 */
async function store(chat: number, ages: ReadonlyArray<number | null>): Promise<void> {
  await client.query(
    `insert into messages (chat_id, user_id, message_id, version, day, record)
     select $1, 0, n, 1, (now() at time zone 'UTC')::date - coalesce(age, 0),
       case when age is not null then convert_to('message ' || n, 'UTF8') end
     from unnest($2::int[]) with ordinality as r (age, n)`,
    [chat, ages],
  );
  await client.query(
    'insert into chat_sequences (chat_id, user_id, last_message_id, version) values ($1, 0, $2, 1)',
    [chat, ages.length],
  );
}

async function newest(...chats: number[]): Promise<Record<number, string | null>> {
  statements = 0;
  const rows = await loadNewestHeads(
    sql,
    chats.map((id) => ({ id, user: 0 })),
  );
  expect(rows.length).toBe(chats.length);
  return Object.fromEntries(rows.map(({ chat_id, head }) => [chat_id, head?.toString() ?? null]));
}

beforeAll(async () => {
  database = await migratedDatabase();
  client = new pg.Client(database.url);
  client.setTypeParser(20, Number);
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

test('the newest message of a chat is found, however old the message is', async () => {
  await store(1, [400, 40, 10, 1, 0]);
  await store(2, [400, 40, 10]);
  await store(3, [400, 40]);
  await store(4, [400, null]);
  await store(5, [null]);
  expect(await newest(1, 2, 3, 4, 5, 6)).toEqual({
    1: 'message 5',
    2: 'message 3',
    3: 'message 2',
    4: 'message 1',
    5: null,
    6: null,
  });
  expect(statements).toBe(3);
});

test('one statement finds the newest message of chats with recent messages, and of chats without messages', async () => {
  await store(11, [400, 1]);
  await store(12, [0, 0, 0]);
  expect(await newest(11, 12, 13)).toEqual({ 11: 'message 2', 12: 'message 3', 13: null });
  expect(statements).toBe(1);
});
