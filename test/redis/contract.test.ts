/** Tests the grammar of script headers. An invalid header is refused, and the error names the file. */
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

describe('script headers are parsed', () => {
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
    ['ten arguments', `@summary x.\n${args(10)}`, undefined, 'a/b.lua: more than 9 arguments'],
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
  ])('a script is refused because its header is invalid: %s', (_, header, body, message) => {
    const attempt = () => read(header, body);
    expect(attempt).toThrow(ContractError);
    expect(attempt).toThrow(message);
  });

  test('a script file without a header is refused', () => {
    writeFileSync(join(root, 'x.lua'), 'return 1\n');
    expect(() => readScript(root, 'x.lua')).toThrow('x.lua: no header between --[[ and ]]');
  });

  test("a shared function that uses KEYS is refused, and the error names the function's file and line", () => {
    put('lib/f.lua', '@summary f.', 'local function f()\n  return KEYS[1]\nend');
    expect(() => read('@summary x.', 'return ok(f())')).toThrow('lib/f.lua:5: use the names');
  });

  test('a script must declare every error that its shared functions return', () => {
    put('lib/f.lua', '@summary f.', "local function f() return refuse('inside') end");
    expect(() => read('@summary x.', 'return f()')).toThrow('does not declare @err inside');
  });

  test('a name may be declared by only one shared file', () => {
    put('lib/f.lua', '@summary f.', 'local a = 1');
    put('lib/g.lua', '@summary g.', 'local a = 2');
    expect(() => read('@summary x.')).toThrow('lib/g.lua:4: a is declared twice in lib/');
  });
});

test('a script header may have nine arguments, and a list must be the last argument', () => {
  const script = read(`@summary x.\n${args(8)}\n@args l int\n@key k {NN}:k SET\n@keys m {NN}:… SET`);
  expect(script.args.map(({ name, form }) => `${name} ${form}`).slice(-2)).toEqual(['a7 one', 'l list']);
  expect(script.keys.map(({ name, form }) => `${name} ${form}`)).toEqual(['k one', 'm list']);
});

test('keys, arguments, flags and limits are available to the script body by name', () => {
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

test('each line of a combined script is mapped to the file that the line came from', () => {
  put('lib/f.lua', '@summary f.\n@why it must.', 'local f = 1');
  const { source, origin } = read('@summary x.', 'local a = f\nreturn ok(a)');
  const lines = source.split('\n');
  expect(origin[lines.indexOf('local f = 1')]).toBe('lib/f.lua:5');
  expect(origin[lines.indexOf('return ok(a)')]).toBe('a/b.lua:5');
});

test('shared functions that a script never calls are omitted', () => {
  const shared = [
    ...['local function deep(a)', '  return a -- wide', 'end', 'local function one() return deep(1) end'],
    ...['-- As wide as one.', 'local function wide()', '  return one()', 'end', 'local kept = 2'],
  ];
  put('lib/g.lua', '@summary g.', shared.join('\n'));
  const { source, origin } = read('@summary x.\n@derived d {NN}:d:<id> SET', 'return ok(one())');
  const lines = source.split('\n');
  expect(source).toContain('local function deep(a)\n  return a -- wide\nend\n');
  expect(source).toContain('local function one()');
  expect(source).not.toContain('local kept');
  expect(source).not.toContain('local function wide');
  expect(source).not.toContain('local function d_key');
  expect(origin[lines.indexOf('  return a -- wide')]).toBe('lib/g.lua:5');
  expect(read('@summary x.', 'return ok(wide())').source).toContain('local function wide');
});

test('a shared function comes after the functions and constants that it uses', () => {
  put('lib/a.lua', '@summary a.', 'local function user()\n  return late(CONSTANT)\nend');
  put('lib/z.lua', '@summary z.', 'local CONSTANT, other = 1, 2\nlocal function late() end');
  const { source, shared } = read('@summary x.', 'return ok(user())');
  expect(source.split('\n').slice(2, 4)).toEqual([
    'local function late() end',
    'local CONSTANT, other = 1, 2',
  ]);
  expect(shared).toEqual(['z', 'a']);
});

test('a shared function is not included if its name occurs only inside a string literal or a field access', () => {
  put('lib/f.lua', '@summary f.', 'local function now() end');
  expect(read('@summary x.', "return ok('now', a.now)").shared).toEqual([]);
});

describe('scripts inherit declarations of shared files', () => {
  const declared = [
    ...['@summary f.', '@key k {NN}:k SET', '@derived k {NN}:k:<id> HASH', '@key unused {NN}:u SET'],
    ...['@arg a text', '@arg unused text', '@err e t text', '@err inside', '@err unused'],
  ];
  const put_f = () => put('lib/f.lua', declared.join('\n'), "local function f() return 'inside' end");

  test('a script inherits only the declarations that it uses', () => {
    put_f();
    const script = read(
      '@summary x.\n@arg b int',
      "if f() then return refuse('e', a) end return ok(k_key, b)",
    );
    expect(script.keys.map(({ name, form }) => `${name} ${form}`)).toEqual(['k one']);
    expect(script.args.map(({ name }) => name)).toEqual(['a', 'b']);
    expect([...script.errors]).toEqual([
      ['e', [{ name: 't', type: 'text' }]],
      ['inside', []],
    ]);
  });

  test('an inherited key is a fixed key or a derived key, depending on how the script uses it', () => {
    put_f();
    const forms = (body: string) => read('@summary x.', body).keys.map(({ form }) => form);
    expect(forms('f() return ok(k_key(1))')).toEqual(['derived']);
    expect(forms('f() return ok(k_prefix)')).toEqual(['derived']);
    expect(forms('f() return ok(k_key)')).toEqual(['one']);
  });

  test('a declaration in the script overrides an inherited declaration of the same name', () => {
    put_f();
    const script = read('@summary x.\n@key k {NN}:own LIST\n@err e', "f() return refuse('e', k_key)");
    expect(script.keys.map(({ pattern }) => pattern)).toEqual(['{NN}:own']);
    expect(script.errors.get('e')).toEqual([]);
  });

  test('a script inherits nothing from a shared file if it uses no function of that file', () => {
    put_f();
    expect(read('@summary x.', 'return ok(k_key, a)').keys).toEqual([]);
  });
});

describe('the combined form', () => {
  const header = [
    ...['@summary x.', '@combine 4', '@key meta {NN}:meta HASH', '@derived root {NN}:root:<id> SET'],
    ...['@key request {NN}:req:<id> STRING', '@derived own {NN}:own:<chat>:<id> SET', '@arg run text'],
    ...['@arg f flag', '@args l int'],
  ].join('\n');

  test('a script with a request id has a combined form only if its header declares one', () => {
    expect(read(header.replace('@combine 4\n', '')).combined).toBeNull();
    expect(read(header).combined?.callsMax).toBe(4);
  });

  test('a script without a request id has a combined form if it may be repeated', () => {
    const repeatable = header.replace('@key request', '@repeatable yes\n@key other');
    expect(read(repeatable).combined?.ownKeys).toEqual(['other', 'own']);
  });

  test('all calls of a combined run share the keys that depend only on the partition', () => {
    expect(read(header).combined).toMatchObject({
      commonKeys: ['meta', 'root'],
      ownKeys: ['request', 'own'],
    });
  });

  test('each line of the combined form is mapped to the file that the line came from', () => {
    put('lib/f.lua', '@summary f.\n@after ends', 'local f = 1\nlocal function ends() end');
    const form = read(header, 'local a = f\nreturn ok(a)').combined;
    const lines = form?.source.split('\n') ?? [];
    expect(form?.origin).toHaveLength(lines.length);
    expect(form?.origin[lines.indexOf('local f = 1')]).toBe('lib/f.lua:5');
    expect(form?.origin[lines.indexOf('return ok(a)')]).toBe('a/b.lua:13');
  });

  test('only the combined form contains the lines marked for combined runs, and the functions that these lines call', () => {
    put('lib/f.lua', '@summary f.', 'local function saved() end');
    const body = '  if combined then saved() end\nif not combined then a = 1 end\nreturn ok()';
    const { source, combined } = read(header, body);
    expect(source).not.toMatch(/saved|if combined/);
    expect(source).toContain('local combined=false ');
    expect(combined?.source).toContain('local function saved() end');
    expect(combined?.source).toContain('if combined then saved() end');
  });

  test('the combined form ends with the functions that shared files declare for the end of a run', () => {
    put('lib/f.lua', '@summary f.\n@after ends', 'local f = 1\nlocal function ends() end');
    const { source, combined } = read(header, 'return ok(f)');
    expect(source).not.toContain('ends');
    expect(combined?.source).toMatch(/local function ends\(\) end.*\nends\(\)\nreturn answers$/s);
    expect(read(header, 'return ok()').combined?.source).not.toContain('ends()');
  });

  test.each([
    ['no number', header.replace('4', 'all'), 'all must be a positive number'],
    ['too many calls', header.replace('4', '91'), '@combine allows at most 90 calls'],
    [
      'no request id',
      header.replace('@key request', '@key other'),
      '@combine needs a request id or @repeatable',
    ],
    ['a list of keys', `${header}\n@keys m {NN}:… SET`, '@combine excludes @keys'],
  ])('a combined form with %s is refused', (_, given, message) => {
    expect(() => read(given)).toThrow(`a/b.lua: ${message}`);
  });
});

test('shared files are not read as scripts', () => {
  put('lib/f.lua', '@summary f.', '');
  put('z/last.lua', '@summary z.');
  put('a/first.lua', '@summary a.');
  expect([...readScripts(root).keys()]).toEqual(['a/first', 'z/last']);
});

test('the generator creates one result type per status, and leaves out the run id, which the runner handles', () => {
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
