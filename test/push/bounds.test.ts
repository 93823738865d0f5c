/** Tests which people get a push notification for a message, and when they get it. These tests use only Postgres. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noteDue } from '../../src/postgres/accounts/push.js';
import { type FreshDatabase, migratedDatabase } from '../support/servers.js';

let database: FreshDatabase;
let client: pg.Client;
const crowd = -7;

const sql = async (text: string, ...values: unknown[]) => (await client.query(text, values)).rows;
const on = { query: async (text: string, values: readonly unknown[] = []) => sql(text, ...values) } as never;

beforeAll(async () => {
  database = await migratedDatabase();
  client = new pg.Client(database.url);
  await client.connect();
  await sql(`insert into users (id, first_name) select n, 'x' from generate_series(1, 4) n`);
  await sql(`insert into push_subscriptions (user_id, endpoint, p256dh, auth)
             select n, 'https://push.example/' || n, '', '' from generate_series(1, 4) n`);
  await sql(`insert into chats (id, type, title, creator_id) values ($1, 'group', 'Crowd', 1)`, crowd);
  await sql(
    `insert into chat_members (chat_id, member_id, is_bot, status)
     select $1::bigint, n, false, 'member' from generate_series(1, 4) n`,
    crowd,
  );
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

test('the number of people notified of one message and the length of the queue are limited', async () => {
  const bounds = { delayMs: 3_600_000, gapMs: 0, recipientsMax: 3, dueMax: 1_000 };
  const message = { chat: crowd, user: 0, message: 10, sender: 9 };
  const rows = () => sql('select message_id, due_at from push_due');
  await noteDue(on, [message], { ...bounds, dueMax: 0 });
  expect(await rows()).toEqual([]);
  await noteDue(on, [message], bounds);
  const before = await rows();
  expect(before.length).toBe(3);
  // A message older than the one in the pending notification changes nothing. A newer message replaces it, but does not
  // postpone the notification.
  await noteDue(on, [{ ...message, message: 9 }], bounds);
  expect(await rows()).toEqual(before);
  await noteDue(on, [{ ...message, message: 11 }], { ...bounds, delayMs: 7_200_000 });
  expect(await rows()).toEqual(before.map((row) => ({ ...row, message_id: '11' })));
});

test('a person gets no second notification about a chat until a minimum time has passed', async () => {
  await sql('delete from push_due');
  await sql('insert into push_due (user_id, chat_id, message_id, pushed_at) values (1, $1, 1, now())', crowd);
  const bounds = { delayMs: 0, gapMs: 3_600_000, recipientsMax: 10, dueMax: 10 };
  await noteDue(on, [{ chat: crowd, user: 0, message: 2, sender: 4 }], bounds);
  const due = await sql('select user_id from push_due where due_at <= now() order by user_id');
  expect(due).toEqual([{ user_id: '2' }, { user_id: '3' }]);
  const later = await sql("select user_id from push_due where due_at > now() + interval '59 minutes'");
  expect(later).toEqual([{ user_id: '1' }]);
});
