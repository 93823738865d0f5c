import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  appliedVersion,
  databaseProblem,
  migrate,
  SchemaError,
  schemaVersion,
} from '../../src/postgres/migrate.js';
import { createPool, statement } from '../../src/postgres/pool.js';
import { freshDatabase } from '../support/servers.js';

const shipped = fileURLToPath(new URL('../../src/postgres/migrations', import.meta.url));
let folder: string;
let url: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'petrel-migrations-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  url = (await freshDatabase()).url;
  rmSync(folder, { recursive: true, force: true });
  cpSync(shipped, folder, { recursive: true });
});

const shippedCount = readdirSync(shipped).length;
const next = `${String(shippedCount + 1).padStart(4, '0')}`;

async function tables(): Promise<string[]> {
  const pool = createPool({ url, max: 1, name: 'test' });
  const { rows } = await pool.query<{ name: string }>(
    statement('tables', "select tablename as name from pg_tables where schemaname = 'public' order by 1"),
  );
  await pool.close();
  return rows.map((row) => row.name);
}

describe('migrate updates the schema of a database', () => {
  it('migrate applies each migration file once and prints the name of the file', async () => {
    const lines: string[] = [];
    expect(await appliedVersion(url)).toBe(0);
    expect(await migrate(url, (line) => lines.push(line))).toBe(schemaVersion());
    expect(lines).toHaveLength(shippedCount);
    expect(lines[0]).toMatch(/^applied 0001_foundation\.sql in \d+ ms$/);
    expect(await tables()).toContain('messages');
    expect(await appliedVersion(url)).toBe(schemaVersion());
    const again: string[] = [];
    await migrate(url, (line) => again.push(line));
    expect(again).toEqual([`schema ${schemaVersion()} is up to date`]);
  });

  it('migrate prints which versions of the program can use the new schema', async () => {
    await migrate(url);
    const now = schemaVersion();
    expect(await databaseProblem(url, now)).toBeNull();
    expect(await databaseProblem(url, now + 1)).toMatch(/run "petrel migrate"/);
    expect(await databaseProblem(url, 1)).toMatch(/use the version that brought it there/);
    const served = String(now).padStart(4, '0');
    writeFileSync(
      join(folder, `${next}_wider.sql`),
      `-- serves ${served}\nalter table bots add column extra text;`,
    );
    await migrate(url, undefined, folder);
    expect(await databaseProblem(url, now + 1)).toBeNull();
    expect(await databaseProblem(url, now)).toBeNull();
    expect(await databaseProblem(url, 1)).toMatch(/schema \d+/);
  });

  it('migrate waits for a locked table in short attempts, so that it does not block other readers', async () => {
    await migrate(url);
    writeFileSync(join(folder, `${next}_wider.sql`), 'alter table bots add column extra text;');
    const pool = createPool({ url, max: 2, name: 'test' });
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let held = () => {};
    const holding = new Promise<void>((resolve) => {
      held = resolve;
    });
    const reader = pool.transaction(async (tx) => {
      await tx.query(statement('read', 'select count(*) from bots'));
      held();
      await released;
    });
    await holding;
    const migrated = migrate(url, undefined, folder);
    // The migration has stopped waiting for the table. Later readers therefore get answers, although the first reader
    // is still active.
    const other = createPool({ url, max: 1, name: 'other' });
    for (let i = 0; i < 30; i++) {
      await other.query(statement('again', 'select count(*) from bots'));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    release();
    await reader;
    expect(await migrated).toBe(schemaVersion() + 1);
    await Promise.all([pool.close(), other.close()]);
  });

  it('migrate applies each migration file once, even if several programs start at the same time', async () => {
    const lines: string[] = [];
    const versions = await Promise.all([1, 2, 3, 4].map(() => migrate(url, (line) => lines.push(line))));
    expect(versions).toEqual(Array.from({ length: 4 }, () => schemaVersion()));
    const applied = lines.filter((line) => line.startsWith('applied')).map((line) => line.split(' ')[1]);
    expect(new Set(applied).size).toBe(shippedCount);
    expect(applied).toHaveLength(shippedCount);
  });

  it('migrate rolls back a migration file that fails', async () => {
    await migrate(url);
    writeFileSync(join(folder, `${next}_more.sql`), 'create table more (id int); select nonsense;');
    await expect(migrate(url, () => {}, folder)).rejects.toThrow(`${next}_more.sql`);
    expect(await tables()).not.toContain('more');
    expect(await appliedVersion(url)).toBe(shippedCount);
    writeFileSync(join(folder, `${next}_more.sql`), 'create table more (id int);');
    expect(await migrate(url, () => {}, folder)).toBe(shippedCount + 1);
    expect(await tables()).toContain('more');
  });

  it('migrate refuses to run if an applied migration file has changed', async () => {
    await migrate(url);
    writeFileSync(join(folder, '0001_foundation.sql'), 'select 1;');
    await expect(migrate(url, () => {}, folder)).rejects.toThrow(SchemaError);
  });

  it('migrate refuses a database whose schema is newer than the program', async () => {
    writeFileSync(join(folder, `${next}_more.sql`), 'create table more (id int);');
    await migrate(url, () => {}, folder);
    await expect(migrate(url)).rejects.toThrow(/this program knows/);
    expect(await appliedVersion(url)).toBe(shippedCount + 1);
  });

  it('migrate refuses migration files with gaps in their numbers or with invalid names', async () => {
    writeFileSync(join(folder, '0999_far.sql'), 'select 1;');
    expect(() => schemaVersion(folder)).toThrow(SchemaError);
    rmSync(join(folder, '0999_far.sql'));
    writeFileSync(join(folder, 'later.sql'), 'select 1;');
    await expect(migrate(url, () => {}, folder)).rejects.toThrow(SchemaError);
  });
});
