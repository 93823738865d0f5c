/** The grammar of script headers: an invalid header is refused, and the error names the place. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { ContractError, readScript, readScripts } from '../../src/redis/scripts/contract.js';
import { generateTypes } from '../../src/redis/scripts/generate.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'petrel-contract-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function put(path: string, header: string, body = 'return ok()'): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), `--[[\n${header}\n]]\n${body}\n`);
}

const read = (header: string, body?: string) => {
  put('a/b.lua', header, body);
  return readScript(root, 'a/b.lua');
};
const args = (count: number) => Array.from({ length: count }, (_, i) => `@arg a${i} int`).join('\n');

describe('the parser of script headers', () => {
  test.each([
    ['no summary', '@flag no-writes', undefined, 'a/b.lua: no @summary'],
    ['an unknown tag', '@summary x.\n@returns 1', undefined, 'a/b.lua: unknown tag @returns'],
    [
      'an unknown key type',
      '@summary x.\n@key k {NN}:k BAG',
      undefined,
      'a/b.lua: BAG must be one of STRING',
    ],
    ['a key without a type', '@summary x.\n@key k {NN}:k', undefined, 'a/b.lua: undefined must be one of'],
    [
      'an unknown argument type',
      '@summary x.\n@arg a float',
      undefined,
      'a/b.lua: float must be one of text',
    ],
    ['an unknown result type', '@summary x.\n@ok a float', undefined, 'a/b.lua: float must be one of text'],
    [
      'an unknown type in an error',
      '@summary x.\n@err e a float',
      "return refuse('e')",
      'float must be one of',
    ],
    [
      'a field of an error without a type',
      '@summary x.\n@err e a',
      "return refuse('e')",
      'undefined must be',
    ],
    ['an unknown flag', '@summary x.\n@flag fast', undefined, 'a/b.lua: fast must be one of allow-oom'],
    ['nine arguments', `@summary x.\n${args(9)}`, undefined, 'a/b.lua: more than 8 arguments'],
    [
      'a list before another argument',
      '@summary x.\n@args l int\n@arg a int',
      undefined,
      'a list comes last',
    ],
    [
      'a list before another key',
      '@summary x.\n@keys l {NN}:… SET\n@key k {NN}:k SET',
      undefined,
      'a list comes last',
    ],
    ['KEYS in a body', '@summary x.', "local a = 1\nredis.call('GET', KEYS[1])", 'a/b.lua:5: use the names'],
    ['ARGV in a body', '@summary x.', 'return ARGV', 'a/b.lua:4: use the names'],
    [
      'an undeclared error',
      '@summary x.',
      "return refuse('nope')",
      'a/b.lua: the header does not declare @err nope',
    ],
    [
      'an error that is never returned',
      '@summary x.\n@err nope',
      undefined,
      'a/b.lua: @err nope is never returned',
    ],
    ['an unknown limit', '@summary x.', 'return LIMITS.mood', 'a/b.lua:4: limits.ts has no mood'],
    ['an inherited name as a limit', '@summary x.', 'return LIMITS.toString', 'limits.ts has no toString'],
  ])('refuses %s', (_, header, body, message) => {
    const attempt = () => read(header, body);
    expect(attempt).toThrow(ContractError);
    expect(attempt).toThrow(message);
  });

  test('refuses a file without a header', () => {
    writeFileSync(join(root, 'x.lua'), 'return 1\n');
    expect(() => readScript(root, 'x.lua')).toThrow('x.lua: no header between --[[ and ]]');
  });

  test('refuses KEYS in a shared function, with the line in that function’s own file', () => {
    put('lib/f.lua', '@summary f.', 'local function f()\n  return KEYS[1]\nend');
    expect(() => read('@summary x.\n@include f', 'return ok(f())')).toThrow('lib/f.lua:5: use the names');
  });

  test('refuses a shared function that returns an error which the script does not declare', () => {
    put('lib/f.lua', '@summary f.', "local function f() return refuse('inside') end");
    expect(() => read('@summary x.\n@include f', 'return f()')).toThrow('does not declare @err inside');
  });

  test('refuses an include that does not exist', () => {
    expect(() => read('@summary x.\n@include nothing')).toThrow(/nothing\.lua/);
  });
});

test('accepts eight arguments, and lists at the end', () => {
  const script = read(`@summary x.\n${args(7)}\n@args l int\n@key k {NN}:k SET\n@keys m {NN}:… SET`);
  expect(script.args.map(({ name, form }) => `${name} ${form}`).slice(-2)).toEqual(['a6 one', 'l list']);
  expect(script.keys.map(({ name, form }) => `${name} ${form}`)).toEqual(['k one', 'm list']);
});

test('makes keys, arguments, flags and limits available to the body by name', () => {
  const { source } = read(
    '@summary x.\n@flag allow-oom\n@key k {NN}:k SET\n@derived d {NN}:d:<id> SET\n@arg f flag\n@args l int',
    'return ok(k_key, d_key(1), f, l, LIMITS.queue_bytes_max)',
  );
  const [first, prelude, body] = source.split('\n');
  expect(first).toBe('#!lua flags=allow-oom');
  expect(prelude).toContain('local k_key=KEYS[1] local d_prefix=KEYS[2]');
  expect(prelude).toContain("local f=ARGV[1]=='1' local l={} for i=2,#ARGV do l[i-1]=ARGV[i] end");
  expect(body).toBe(`return ok(k_key, d_key(1), f, l, ${limits.queue_bytes_max})`);
});

test('maps each line to the file that it came from', () => {
  put('lib/f.lua', '@summary f.\n@why it must.', 'local f = 1');
  const { source, origin } = read('@summary x.\n@include f', 'local a = f\nreturn ok(a)');
  const lines = source.split('\n');
  expect(origin[lines.indexOf('local f = 1')]).toBe('lib/f.lua:5');
  expect(origin[lines.indexOf('return ok(a)')]).toBe('a/b.lua:6');
});

test('omits shared functions that are never called', () => {
  const shared = [
    ...['local function deep(a)', '  return a -- wide', 'end', 'local function one() return deep(1) end'],
    ...['-- As wide as one.', 'local function wide()', '  return one()', 'end', 'local kept = 2'],
  ];
  put('lib/g.lua', '@summary g.', shared.join('\n'));
  const { source, origin } = read('@summary x.\n@include g\n@derived d {NN}:d:<id> SET', 'return ok(one())');
  const lines = source.split('\n');
  expect(source).toContain('local function deep(a)\n  return a -- wide\nend\n');
  expect(source).toContain('local function one()');
  expect(source).toContain('local kept = 2');
  expect(source).not.toContain('local function wide');
  expect(source).not.toContain('local function d_key');
  expect(origin[lines.indexOf('local kept = 2')]).toBe('lib/g.lua:12');
  expect(read('@summary x.\n@include g', 'return ok(wide())').source).toContain('local function wide');
});

test('reads every script by name, without the shared functions', () => {
  put('lib/f.lua', '@summary f.', '');
  put('z/last.lua', '@summary z.');
  put('a/first.lua', '@summary a.');
  expect([...readScripts(root).keys()]).toEqual(['a/first', 'z/last']);
});

test('generates one result type per status and leaves the run id to the runner', () => {
  put(
    'a/b.lua',
    '@summary Does it.\n@key k {NN}:k SET\n@arg run text\n@arg n int\n@args l bytes\n@ok a int?\n@err stale_run\n@err no t text',
    "if run then return refuse('stale_run') end return refuse('no', 1)",
  );
  expect(generateTypes(root)).toContain(`  /** Does it. */
  'a/b': {
    keys: { k: string };
    args: { n: number | string; l: readonly (Buffer | string)[] };
    result:
      | { status: 'ok'; a: number | null }
      | { status: 'stale_run' }
      | { status: 'no'; t: string };
  };`);
});
