import { randomBytes } from 'node:crypto';
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { makeToken } from '../../src/rules/token.js';
import { createTokenSearch } from './plain_tokens.js';
import { freshDatabase, temporaryFolder } from './servers.js';

test('a search finds issued tokens in rows and files, including rows and files written after an earlier search', async () => {
  const database = await freshDatabase();
  const folder = temporaryFolder();
  const client = new pg.Client(database.url);
  await client.connect();
  onTestFinished(async () => {
    await client.end();
    await database.drop();
    rmSync(folder, { recursive: true });
  });
  await client.query('create table notes (note text)');
  const tokens = Array.from({ length: 5 }, (_, i) => makeToken('bot', i + 1, randomBytes(32)));
  const [first, second, open, third, foreign] = tokens as [string, string, string, string, string];
  const issued = new Set([first, second, open, third]);
  const search = createTokenSearch(database.url, folder, [], issued);
  const write = (note: string) => client.query('insert into notes values ($1)', [note]);
  const log = join(folder, 'log');

  writeFileSync(log, `nothing${second.slice(0, 20)}`);
  // This row is written before the first search and committed after the search.
  const other = new pg.Client(database.url);
  await other.connect();
  await other.query('begin');
  await other.query('insert into notes values ($1)', [open]);
  await write(`${first} and ${foreign}`);
  expect(await search()).toEqual(['table notes: 1:…']);

  await write(third);
  await other.query('commit');
  await other.end();
  appendFileSync(log, second.slice(20));
  expect((await search()).sort()).toEqual([
    'file log: 2:…',
    'table notes: 1:…',
    'table notes: 3:…',
    'table notes: 4:…',
  ]);
});
