/** Tests that a purge deletes an entity's parts before the entity, in small steps. It must delete nothing else. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { purgeTombstones } from '../../src/journal/purge.js';
import { limits } from '../../src/limits.js';
import { createPool, type Pool, statement } from '../../src/postgres/pool.js';
import { type FreshDatabase, migratedDatabase } from '../support/servers.js';

let database: FreshDatabase;
let pool: Pool;

beforeAll(async () => {
  database = await migratedDatabase();
  pool = createPool({ url: database.url, max: 2, name: 'test' });
});
afterAll(async () => {
  await pool?.close();
  await database?.drop();
});

let statements = 0;
const run = (text: string) => pool.query(statement(`test_${++statements}`, text));
const rest = () => run("delete from installation where name = 'tombstones_purged_at'");

async function left(table: string): Promise<number[][]> {
  const text = `select partition, number, count(*) as rows from ${table} group by 1, 2 order by 1, 2`;
  return (await run(text)).rows.map((row) => Object.values(row as object).map(Number));
}

const others = (rows: number) => [
  [1, 8, rows],
  [1, 9, rows],
  [2, 7, rows],
];

test('the audit log keeps a limited number of the newest events of each bot, for the configured number of days', async () => {
  await run(`insert into bot_audit (bot_id, actor_type, event, at)
    select b, 'service', 'created', now() - n * interval '1 second' from generate_series(1, 2) b,
      generate_series(1, case b when 1 then ${limits.audit_events_per_bot_max} + 3 else 2 end) n order by n desc`);
  await run(`insert into bot_audit (bot_id, actor_type, event, at)
    values (2, 'service', 'deleted', now() - interval '31 days'), (2, 'service', 'deleted', now() - interval '29 days')`);
  expect(await purgeTombstones(pool, 30)).toBe(4);
  const { rows } = await run(
    "select bot_id, count(*) as n, min(at) > now() - interval '30 days' as young from bot_audit group by 1 order by 1",
  );
  expect(rows).toMatchObject([
    { bot_id: 1, n: limits.audit_events_per_bot_max, young: true },
    { bot_id: 2, n: 3, young: true },
  ]);
  await rest();
});

test('the log of administrators’ calls keeps a limited number of the newest calls, for the configured number of days', async () => {
  await run(`insert into admin_calls (token, action, target, address, at)
    select 'ada', 'GET /', '', '', now() - n * interval '1 millisecond'
      from generate_series(1, ${limits.admin_calls_kept} + 3) n order by n desc`);
  await run(`insert into admin_calls (token, action, target, address, at)
    values ('ada', 'old', '', '', now() - interval '31 days'), ('ada', 'young', '', '', now() - interval '29 days')`);
  expect(await purgeTombstones(pool, 30)).toBe(5);
  const { rows } = await run(
    "select count(*) as n, count(*) filter (where action = 'young') as young, count(*) filter (where action = 'old') as old from admin_calls",
  );
  expect(rows).toMatchObject([{ n: limits.admin_calls_kept, young: 1, old: 0 }]);
  await rest();
});

test('the purge removes the copy of a message when the copy reaches the age limit for messages', async () => {
  await run(`insert into dead_updates (bot_id, update_id, version, record, created_at)
    select 1, n, 1, 'x', now() - n * interval '1 day' from generate_series(1, 6) n`);
  await run(`insert into delivery_attempts (bot_id, update_id, at, delivered, latency_ms, answer, tries)
    select 1, n, now() - n * interval '1 day', true, 1, '', 1 from generate_series(1, 6) n`);
  await run(
    `insert into quarantine select 1, 'x', n, 'x', 'r', now() - n * interval '1 day' from generate_series(1, 6) n`,
  );
  await run(
    `insert into names values ('kept', 7, null), ('held', 7, now() + interval '1 day'), ('free', 7, now())`,
  );
  const rows = async (table: string) => (await run(`select from ${table}`)).count;
  expect(await purgeTombstones(pool)).toBe(1);
  expect(await rows('names')).toBe(2);
  await rest();
  expect(await purgeTombstones(pool, 365, 3)).toBe(12);
  for (const table of ['dead_updates', 'delivery_attempts', 'quarantine']) expect(await rows(table)).toBe(2);
  for (const table of ['dead_updates', 'delivery_attempts', 'quarantine']) await run(`delete from ${table}`);
  await rest();
});

test('the purge removes join requests and events of chats past their maximum age', async () => {
  const { join_request_age_ms_max, member_event_age_ms_max } = limits;
  await run("insert into users (id, first_name) values (1, 'x')");
  await run(
    `insert into chats (id, type, title, creator_id) select -n, 'group', 'x', 1 from generate_series(1, 2500) n`,
  );
  const at = (ageMs: number) => `now() - ${ageMs} * interval '1 millisecond'`;
  const ask = (first: number, last: number, ageMs: number) =>
    run(`insert into join_requests (chat_id, user_id, created_at)
      select -n, 1, ${at(ageMs)} from generate_series(${first}, ${last}) n`);
  await ask(1, 2_400, join_request_age_ms_max + 1_000);
  await ask(2_401, 2_500, join_request_age_ms_max - 60_000);
  const happen = (count: number, ageMs: number) =>
    run(`insert into member_events (chat_id, member_id, is_bot, by_id, was, became, created_at)
      select -n, 1, false, 1, '{}', '{}', ${at(ageMs)} from generate_series(1, ${count}) n`);
  await happen(4, member_event_age_ms_max + 1_000);
  await happen(3, 3 * 86_400_000 + 1_000);
  await happen(2, 3 * 86_400_000 - 60_000);
  const rows = async (table: string) => (await run(`select from ${table}`)).count;
  expect(await purgeTombstones(pool)).toBe(2_404);
  expect([await rows('join_requests'), await rows('member_events')]).toEqual([100, 5]);
  await rest();
  expect(await purgeTombstones(pool, 365, 3)).toBe(3);
  expect(await rows('member_events')).toBe(2);
  await rest();
});

test('the purge removes the reactions and counts of a deleted post before its tombstone', async () => {
  await run(`insert into posts values (1, 7, 1, null, now() - interval '25 hours'),
    (1, 8, 1, null, now() - interval '23 hours'), (1, 9, 1, 'x', null), (2, 7, 1, 'x', null)`);
  await run(`insert into post_reactions
    select partition, number, u, 5, u, 'r', null from posts, generate_series(1, 60000) u
    where u <= 1000 or (partition, number) = (1, 7)`);
  await run("insert into post_tallies select partition, number, 5, 1, 't', null from posts");
  // Collects statistics, because without them each chunk reads all reactions. On a busy machine, this takes minutes.
  await run('analyze posts');
  await run('analyze post_reactions');
  // One purge removes a limited number of rows, and the tombstone stays until all parts of the post are removed.
  expect(await purgeTombstones(pool)).toBe(50_001);
  expect(await left('post_reactions')).toEqual([[1, 7, 10_000], ...others(1_000)]);
  expect(await left('posts')).toEqual([[1, 7, 1], ...others(1)]);
  await rest();
  expect(await purgeTombstones(pool)).toBe(10_001);
  expect(await left('post_reactions')).toEqual(others(1_000));
  expect(await left('post_tallies')).toEqual(others(1));
  expect(await left('posts')).toEqual(others(1));
});

test('a poll past the age limit becomes a tombstone, and a purge one day later removes the tombstone, the results and the votes', async () => {
  const ms = (days: number) => Math.floor(Date.now() - days * 86_400_000);
  const [old, young] = [ms(31), ms(29)];
  for (const table of ['polls', 'poll_results'])
    await run(`insert into ${table} (partition, number, version, record)
      values (1, ${old}, 1, '\\x01'), (1, ${young}, 1, '\\x01')`);
  await run(`insert into poll_votes (partition, number, user_id, version, record)
    select 1, n, u, 1, '\\x01' from unnest(array[${old}, ${young}]::bigint[]) n, generate_series(1, 3) u`);
  await rest();
  expect(await purgeTombstones(pool, 365)).toBe(0);
  await rest();
  expect(await purgeTombstones(pool, 365, 30)).toBe(1);
  expect((await run('select number from polls where record is null')).rows).toEqual([{ number: old }]);
  expect(await left('poll_votes')).toHaveLength(2);
  await run("update polls set deleted_at = now() - interval '25 hours' where deleted_at is not null");
  await rest();
  expect(await purgeTombstones(pool, 365, 30)).toBe(5);
  for (const table of ['polls', 'poll_results', 'poll_votes'])
    expect((await left(table)).map(([, number]) => number)).toEqual([young]);

  // Adds votes as if they were written after the purge. This happens if Redis still has the poll.
  for (const number of [old, young + 1]) {
    await run(`insert into poll_results values (1, ${number}, 2, '\\x01')`);
    await run(`insert into poll_votes values (1, ${number}, 4, 2, '\\x01')`);
  }
  await run("delete from installation where name = 'dead_updates_bounded_at'");
  await rest();
  expect(await purgeTombstones(pool, 365, 30)).toBe(2);
  for (const table of ['poll_results', 'poll_votes'])
    expect((await left(table)).map(([, number]) => number)).toEqual([young, young + 1]);
});
