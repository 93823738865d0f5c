import { spawnSync } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../support/servers.js';
import { longTest } from '../support/tiers.js';

const url = pathToFileURL(fileURLToPath(new URL('../../infra/build/parts.mjs', import.meta.url))).href;
const { readFailures, readMinutes, recordTo, refuseAfterInterrupt, rotate, runParts } = await import(url);

let now = 0;
let lines: string[] = [];
const ran: string[] = [];
const part = (name: string, minutes: number, takes = minutes, code = 0) => ({
  ...{ name, minutes },
  run: async () => {
    ran.push(name);
    now += takes * 60_000;
    return code;
  },
});
const run = (parts: object[], minutes: number): Promise<number> =>
  runParts(
    parts,
    minutes,
    (line: string) => lines.push(...line.split('\n').filter((each) => /^ {2}|passed,/.test(each))),
    () => now,
  );

beforeEach(() => {
  now = 1_000;
  lines = [];
  ran.length = 0;
});

test('a part of the long tier is skipped if it may exceed the time limit', async () => {
  expect(await run([part('a', 4), part('b', 20), part('c', 4)], 10)).toBe(0);
  expect(ran).toEqual(['a', 'c']);
  expect(lines).toEqual([
    '  passed  a: 4.0 min',
    '  SKIPPED b: it may take 20 min, 6 are left',
    '  passed  c: 4.0 min',
    '2 passed, 0 failed, 1 skipped for lack of time',
  ]);
});

test('the long tier continues after one of its parts has failed', async () => {
  expect(await run([part('a', 4, 4, 3), part('b', 4)], Number.POSITIVE_INFINITY)).toBe(3);
  expect(lines).toEqual([
    '  FAILED  a: 4.0 min',
    '  passed  b: 4.0 min',
    '1 passed, 1 failed, 0 skipped for lack of time',
  ]);
});

test('the failures of a part of the long tier are printed after the list of results, at the end of the log', async () => {
  const failed = { ...part('a', 4, 4, 1), failures: () => ['adds numbers\nexpected 2 to be 3'] };
  const text: string[] = [];
  await runParts([failed, part('b', 4)], 60, (line: string) => text.push(...line.split('\n')));
  expect(text.slice(text.findIndex((line) => line.startsWith('  passed')))).toEqual([
    '  passed  b: 0.0 min',
    '',
    'a: adds numbers',
    'expected 2 to be 3',
    '',
    '1 passed, 1 failed, 0 skipped for lack of time',
  ]);
});

longTest(
  'the failed tests and the failed files of a part are read from the record of the test runner',
  () => {
    const folder = temporaryFolder();
    const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));
    symlinkSync(modules, join(folder, 'node_modules'));
    const head = "import { expect, test } from 'vitest';\n";
    writeFileSync(join(folder, 'adds.test.ts'), `${head}test('adds', () => expect(1 + 1).toBe(3));`);
    writeFileSync(join(folder, 'breaks.test.ts'), "throw new Error('no such server');");
    const record = join(folder, 'record.json');
    const args = ['run', '--root', folder, ...recordTo(record)];
    expect(spawnSync(join(modules, '.bin/vitest'), args).status).toBe(1);
    expect(readFailures(record)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^adds\n.*expected 2 to be 3/),
        expect.stringMatching(/breaks\.test\.ts\n.*no such server/),
      ]),
    );
    rmSync(folder, { recursive: true });
    expect(readFailures(record)).toEqual([]);
  },
);

test('a part of the long tier is marked if it took longer than expected', async () => {
  await run([part('a', 4, 5.5)], 60);
  expect(lines[0]).toBe('  passed  a: 5.5 min, more than the expected 4');
});

test('the commit determines which part of the long tier runs first, and each part can be first', () => {
  const parts = ['a', 'b', 'c'];
  expect(rotate(parts, '00000001ff')).toEqual(['b', 'c', 'a']);
  const firsts = [0, 1, 2].map((n) => rotate(parts, n.toString(16).padStart(8, '0'))[0]);
  expect(firsts).toEqual(parts);
  expect(rotate([], 'abcdef01')).toEqual([]);
});

test('the value of --minutes must be a number above 0', () => {
  expect(readMinutes(['test/faults', '--minutes', '60'])).toEqual({ minutes: 60, rest: ['test/faults'] });
  expect(readMinutes(['test/faults'])).toEqual({
    minutes: Number.POSITIVE_INFINITY,
    rest: ['test/faults'],
  });
  for (const bad of ['0', '-1', 'x', undefined])
    expect(() => readMinutes(['--minutes', bad])).toThrow('--minutes must be a number above 0');
});

test('after Ctrl-C, no further part of the long tier starts', async () => {
  const signals = new EventEmitter();
  const start = refuseAfterInterrupt(async (name: string) => {
    if (name === 'b') signals.emit('SIGINT');
    ran.push(name);
    return 0;
  }, signals);
  const parts = ['a', 'b', 'c'].map((name) => ({ ...part(name, 4), run: () => start(name) }));
  await expect(run(parts, 60)).rejects.toThrow('interrupted: the remaining tests were not run');
  expect(ran).toEqual(['a', 'b']);
});
