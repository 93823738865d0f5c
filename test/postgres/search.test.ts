/** Tests with a real Postgres which messages are found by the SQL statement of a search. */
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type SearchRange, searchRanges } from '../../src/postgres/messages/search.js';
import { sqlOver } from '../../src/postgres/sql.js';
import { foldCase, hexWordPattern, searchWords, wordPattern } from '../../src/rules/search.js';
import { type FreshDatabase, migratedDatabase } from '../support/servers.js';

let database: FreshDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await migratedDatabase();
  client = new pg.Client(database.url);
  client.setTypeParser(20, Number);
  client.setTypeParser(1016 as never, (text: string) =>
    text === '{}' ? [] : text.slice(1, -1).split(',').map(Number),
  );
  await client.connect();
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

const sql = sqlOver(
  async <T>(text: string, params: readonly unknown[] = []) =>
    (await client.query(text, [...params])).rows as T[],
);

/** Stores messages that have only a text. A null stands for a deleted message. */
const store = (chat: number, texts: ReadonlyArray<string | null>, day = '2030-01-01') =>
  client.query(
    `insert into messages (chat_id, user_id, message_id, version, day, record)
     select $1, 0, n, 1, $2, record from unnest($3::bytea[]) with ordinality as r (record, n)`,
    [chat, day, texts.map((text) => (text === null ? null : Buffer.from(text)))],
  );
const range = (chat: number, given: Partial<SearchRange> = {}): SearchRange => ({
  ...{ chat, user: 0, before: 1_000_000, rows: 1_000 },
  ...given,
});
const search = (ranges: readonly SearchRange[], query: string, found = 10) =>
  searchRanges(sql, ranges, searchWords(query) as readonly string[], found);

const alphabet = fc.constantFrom(...'abzABZ09 %_\\\'"-.пПрРҚқԱաŌōÉéΣσςёЁ東🐦\u0000\n');
const texts = fc.string({ unit: alphabet, maxLength: 30 });

test('the plain and the hexadecimal search pattern of a word both select every text that contains the word', async () => {
  const statement = `select encode($1::bytea, 'escape') collate "C" ilike $2 as selected,
    encode($1::bytea, 'hex') collate "C" like $3 as fast`;
  await fc.assert(
    fc.asyncProperty(
      texts,
      fc.string({ unit: alphabet, minLength: 1, maxLength: 8 }),
      texts,
      async (a, b, c) => {
        const text = a + b + c;
        for (const word of searchWords(b) ?? []) {
          expect(foldCase(text)).toContain(word);
          const patterns = [wordPattern(word), hexWordPattern(word)];
          const { rows } = await client.query(statement, [Buffer.from(text), ...patterns]);
          expect({ text, word, ...rows[0] }).toEqual({ text, word, selected: true, fast: true });
        }
      },
    ),
    { numRuns: 400 },
  );
});

test('special characters in a query match only themselves, and a text must contain every word of the query', async () => {
  await store(-1, ['Москва', 'Минск', 'мост', 'a_b', 'aXb', '100%', '1000', 'back\\slash', 'backslash']);
  const idsOf = async (query: string) => (await search([range(-1)], query))[0]?.ids;
  expect(await idsOf('мос')).toEqual([3, 1]);
  expect(await idsOf('a_b')).toEqual([4]);
  expect(await idsOf('0%')).toEqual([6]);
  expect(await idsOf('k\\s')).toEqual([8]);
  expect(await idsOf('МИН')).toEqual([2]);
  expect(await idsOf('мо СКВ')).toEqual([1]);
});

test('a search does not confuse letters whose hexadecimal codes share a digit', async () => {
  await store(-5, ['to', '4o', 'do', 'TO', 'qatar', 'aqtqb']);
  expect((await search([range(-5)], 'to'))[0]?.ids).toEqual([4, 1]);
  expect((await search([range(-5)], 'qatar'))[0]?.ids).toEqual([5]);
});

test('a search stops at the row limit and returns the id at which it stopped', async () => {
  await store(-2, ['old x', 'x', null, 'x', 'y']);
  const [whole, part, rest, none] = await search(
    [range(-2), range(-2, { rows: 3 }), range(-2, { before: 3 }), range(-3)],
    'x',
  );
  expect(whole).toEqual({ place: 1, ids: [4, 2, 1], bottom: 1, more: false, isCut: false });
  expect(part).toEqual({ place: 2, ids: [4], bottom: 3, more: true, isCut: false });
  expect(rest).toEqual({ place: 3, ids: [2, 1], bottom: 1, more: false, isCut: false });
  expect(none).toEqual({ place: 4, ids: [], bottom: 0, more: false, isCut: false });
  expect((await search([range(-2)], 'x', 2))[0]?.ids).toEqual([4, 2]);
});

test('a search through large records stops at a byte limit, and the next search continues below the last record that was read', async () => {
  const large = `x${'y'.repeat(100 * 1024)}`;
  await store(
    -4,
    Array.from({ length: 5 }, () => large),
  );
  const [first] = await search([range(-4, { rows: 5 })], 'x');
  expect(first).toEqual({ place: 1, ids: [5, 4, 3], bottom: 3, more: true, isCut: true });
  const [second] = await search([range(-4, { rows: 5, before: 3 })], 'x');
  expect(second).toEqual({ place: 1, ids: [2, 1], bottom: 1, more: false, isCut: false });
});
