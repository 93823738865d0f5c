import { appendFileSync, cpSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isAsLeft, noteLeft } from '../../src/dev/redis_left.js';
import { temporaryFolder } from '../support/servers.js';

let top: string;
let dir: string;
let file: string;

beforeEach(() => {
  top = temporaryFolder();
  dir = join(top, 'redis');
  mkdirSync(join(dir, 'appendonlydir'), { recursive: true });
  file = join(dir, 'appendonlydir', 'appendonly.aof.1.incr.aof');
  writeFileSync(file, 'data');
});

afterEach(() => rmSync(top, { recursive: true, force: true }));

test('after a clean stop, unchanged Redis files are accepted for one start only', () => {
  noteLeft(dir);
  expect(isAsLeft(dir)).toBe(true);
  expect(isAsLeft(dir)).toBe(false);
});

test('Redis files without the record of a clean stop are rejected', () => {
  expect(isAsLeft(dir)).toBe(false);
  expect(isAsLeft(join(top, 'absent'))).toBe(false);
});

test('Redis files in a moved folder are accepted', () => {
  noteLeft(dir);
  renameSync(dir, join(top, 'moved'));
  expect(isAsLeft(join(top, 'moved'))).toBe(true);
});

test('a Redis file that grew, is missing, or was replaced by a copy is rejected', () => {
  const at = new Date(1_700_000_000_000);
  utimesSync(file, at, at);
  noteLeft(dir);
  appendFileSync(file, '');
  appendFileSync(file, 'x');
  expect(isAsLeft(dir)).toBe(false);
  noteLeft(dir);
  rmSync(file);
  expect(isAsLeft(dir)).toBe(false);
  writeFileSync(file, 'data');
  utimesSync(file, at, at);
  noteLeft(dir);
  cpSync(dir, join(top, 'copy'), { recursive: true, preserveTimestamps: true });
  rmSync(dir, { recursive: true });
  cpSync(join(top, 'copy'), dir, { recursive: true, preserveTimestamps: true });
  expect(isAsLeft(dir)).toBe(false);
});
