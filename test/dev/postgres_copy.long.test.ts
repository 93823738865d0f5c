import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Binaries, binariesAt, findBinaries, postgresUser } from '../../src/dev/postgres_binaries.js';
import { readableBinaries } from '../../src/dev/postgres_copy.js';
import { limits } from '../../src/limits.js';
import { temporaryFolder } from '../support/servers.js';

const user = postgresUser();

/** A folder with a copy of the PostgreSQL programs, on the same file system as the folders of the tests. */
let source: string;
let top: string;
let place: string;
let hidden: Binaries;
let lines: string[];

const find = (...places: string[]) =>
  readableBinaries(hidden, user as NonNullable<typeof user>, { log: (line) => lines.push(line), places });

/** These tests run only as root, because only root can run PostgreSQL as another user. */
describe.runIf(user)('the PostgreSQL programs are copied for another user', () => {
  beforeAll(() => {
    source = temporaryFolder();
    cpSync(findBinaries().root, join(source, 'native'), { recursive: true, verbatimSymlinks: true });
  });
  afterAll(() => rm(source, { recursive: true, force: true }));

  beforeEach(() => {
    top = temporaryFolder();
    place = join(top, 'place');
    lines = [];
    const closed = join(top, 'closed');
    mkdirSync(closed, { mode: 0o700 });
    // Uses hard links, because complete copies for each test would take most of the time of this test file.
    execFileSync('cp', ['-al', join(source, 'native'), closed]);
    hidden = binariesAt(join(closed, 'native'), findBinaries().key);
  });
  afterEach(() => rm(top, { recursive: true, force: true }));

  test('PostgreSQL programs are not copied if the user can already read them', () => {
    chmodSync(join(top, 'closed'), 0o755);
    expect(find(place)).toBe(hidden);
    expect(existsSync(place)).toBe(false);
  });

  test('every user can read the copy of the PostgreSQL programs', () => {
    const umask = process.umask(0o077);
    try {
      const { root } = find(place);
      expect(root).toBe(join(place, hidden.key));
      expect(lines).toEqual([expect.stringContaining(`copied PostgreSQL to ${root}`)]);
      const { ino } = statSync(root);
      expect(find(place).root).toBe(root);
      expect(statSync(root).ino).toBe(ino);
      expect(lines).toHaveLength(1);
    } finally {
      process.umask(umask);
    }
  });

  test('an incomplete copy of PostgreSQL is replaced', () => {
    const { postgres } = find(place);
    truncateSync(postgres, 1_000);
    expect(find(place).postgres).toBe(postgres);
    expect(statSync(postgres).size).toBe(statSync(hidden.postgres).size);
  });

  test('PostgreSQL is never copied to a symbolic link or to a folder that another user controls', () => {
    const owned = join(top, 'owned');
    const open = join(top, 'open');
    const linked = join(top, 'linked');
    const below = join(open, 'below');
    for (const folder of [owned, open, below]) mkdirSync(folder);
    chownSync(owned, user?.uid ?? 0, user?.gid ?? 0);
    chmodSync(open, 0o777);
    symlinkSync(owned, linked);
    for (const folder of [owned, open, below]) {
      mkdirSync(join(folder, hidden.key, 'bin'), { recursive: true });
      writeFileSync(join(folder, hidden.key, 'bin', 'postgres'), '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    }
    expect(() => find(owned, open, linked, below)).toThrow(
      /belongs to another user.*others may write.*is not a folder.*others may write/,
    );
    expect(find(owned, open, linked, below, place).root).toBe(join(place, hidden.key));
    expect(readFileSync(join(owned, hidden.key, 'bin', 'postgres'), 'utf8')).toContain('exit 0');
  });

  test('the copy folder keeps a limited number of recently used PostgreSQL versions', () => {
    mkdirSync(place);
    const old = new Date(Date.now() - limits.postgres_copy_age_ms_max - 60_000);
    for (let version = 1; version <= 5; version++) {
      mkdirSync(join(place, `1.${version}`));
      utimesSync(join(place, `1.${version}`), old, new Date(old.getTime() + version * 1_000));
    }
    const drafts = [`${hidden.key}.123.0123abcd`, `${hidden.key}.124.0123abcd`];
    for (const draft of drafts) mkdirSync(join(place, draft));
    utimesSync(join(place, drafts[0] as string), old, old);
    find(place);
    expect(readdirSync(place).sort()).toEqual(['1.4', '1.5', hidden.key, drafts[1]].sort());
    expect(limits.postgres_copies_max).toBe(3);
  });

  test('if no copy of the PostgreSQL programs can be run, the error says what to do', () => {
    rmSync(hidden.initdb);
    rmSync(hidden.postgres);
    expect(() => find(place)).toThrow(
      /move the project out of folders that only root may enter, or set DATABASE_URL/,
    );
  });
});
