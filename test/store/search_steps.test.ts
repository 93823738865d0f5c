/**
 * Tests how many rows each step of a search reads, and when a page of results ends. The database and the clock are
 * simulated.
 */
import { expect, test } from 'vitest';
import type { Pool } from '../../src/postgres/pool.js';
import { oneShard } from '../../src/postgres/shards.js';
import { type ShardDatabase, sqlOver } from '../../src/postgres/sql.js';
import { Search } from '../../src/store/chats/search.js';
import type { StoreContext } from '../../src/store/core/context.js';
import { makeKeys, sharedChat } from '../../src/store/core/keys.js';
import { storeLimits as limits } from '../../src/store/limits.js';

/** A search without matches. Each chat has `length` messages, and each step takes `msPerStep`. */
function searchOf(length: number, msPerStep: number) {
  let now = 0;
  const steps: Array<ReadonlyArray<{ readonly chat: number; readonly rows: number }>> = [];
  const sql = sqlOver(async (text, params = []) => {
    const [first, second, third, fourth, fifth] = params as readonly (readonly number[])[];
    if (text.includes('chat_sequences'))
      return first?.map((chat_id) => ({ chat_id, user_id: 0, last_message_id: length })) as never[];
    if (text.includes('set_config')) return [];
    now += msPerStep;
    steps.push((second ?? []).map((chat, i) => ({ chat, rows: fifth?.[i] ?? 0 })));
    expect(third).toHaveLength(second?.length ?? 0);
    return (fifth ?? []).map((rows, i) => {
      const top = Math.min(fourth?.[i] ?? 0, length + 1);
      return { place: i + 1, ids: [], bottom: Math.max(1, top - rows), more: top > rows, isCut: false };
    }) as never[];
  });
  const db = { ...sql, transaction: (work: (tx: typeof sql) => unknown) => work(sql) } as ShardDatabase;
  const context = {
    ...{ time: { monotonic: () => now }, keys: makeKeys(1) },
    shards: oneShard(undefined as unknown as Pool, db, 1),
  } as unknown as StoreContext;
  return { search: new Search(context, { find: async () => null }, { read: async () => new Map() }), steps };
}

const rowsOf = (steps: ReturnType<typeof searchOf>['steps']) =>
  steps.map((step) => step.reduce((sum, { rows }) => sum + rows, 0));

test('a search reads the rows of a page in steps of growing size, up to a maximum number of rows', async () => {
  const { search, steps } = searchOf(100_000, 0);
  const { next } = await search.inChat(sharedChat(-1), ['x'], 0, 20);
  const rows = rowsOf(steps);
  expect(rows.slice(0, 5)).toEqual([250, 500, 1_000, 2_000, 2_000]);
  expect(rows.reduce((a, b) => a + b)).toBe(limits.search_rows_max);
  expect(next).toBe(100_001 - limits.search_rows_max);
});

test('a search ends a page of results at its time limit, and the next page continues where this page ended', async () => {
  const { search, steps } = searchOf(100_000, limits.search_steps_ms);
  const { messages, next } = await search.inChat(sharedChat(-1), ['x'], 0, 20);
  expect(messages).toEqual([]);
  expect(rowsOf(steps)).toEqual([limits.search_step_rows_min]);
  expect(next).toBe(100_001 - limits.search_step_rows_min);
});

test('a search of all chats reads whole chats in each step, and ends a page of results at its time limit', async () => {
  const chats = Array.from({ length: 60 }, (_, i) => sharedChat(-1 - i));
  const fast = searchOf(100, 0);
  expect(await fast.search.inChats(chats, ['x'], 0, 20)).toEqual({ messages: [], chats: 60, next: 0 });
  expect(rowsOf(fast.steps).slice(0, 3)).toEqual([200, 400, 800]);
  expect(fast.steps.flat().map(({ chat }) => chat)).toEqual(chats.map(({ id }) => id));
  const slow = searchOf(100, limits.search_steps_ms);
  expect(await slow.search.inChats(chats, ['x'], 0, 20)).toEqual({ messages: [], chats: 2, next: 0 });
  // A single step searches a long chat, up to the maximum number of rows per chat.
  const long = searchOf(100_000, limits.search_steps_ms);
  expect(await long.search.inChats(chats, ['x'], 0, 20)).toMatchObject({ chats: 1 });
  expect(rowsOf(long.steps)).toEqual([limits.search_rows_per_chat_max]);
});
