/** Tests that components get time and random numbers passed in (decision 0056). */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const src = fileURLToPath(new URL('../../src', import.meta.url));

/** The only files that may call the clock, the timers and the random number generators of the system. */
const owners = ['time.ts', 'random.ts'];
/**
 * The folders of separate programs: the code of browsers and test runners, clients of any server, and the development
 * servers.
 */
const outside = /^(web\/client|conformance|loadtest|dev|testing)\//;

const calls = [
  /\bDate\.now\b/,
  /\bnew Date\(\)/,
  /\bperformance\.(now|timeOrigin)\b/,
  /\bprocess\.hrtime\b/,
  /(?<![.\w])set(Timeout|Interval|Immediate)\b/,
  /(?<![.\w])clear(Timeout|Interval|Immediate)\b/,
  /\bNodeJS\.(Timeout|Immediate)\b/,
  /\btimers\b.*'|from 'node:timers/,
  /\bAbortSignal\.timeout\b/,
  /\bMath\.random\b/,
  /\brandom(Bytes|UUID|Int|Fill|FillSync)\b/,
  /\bgetRandomValues\b/,
  // A component may name `systemTime` and `systemRandom` only as the defaults of its options.
  /(?<!= |\?\? |: )\bsystem(Time|Random)\b|\bsystem(Time|Random)\./,
];

/** Returns the lines of a source that use the system's time or random numbers. */
const usesIn = (text: string): string[] =>
  text.split('\n').filter((line) => {
    const code = line
      .replace(/^\s*(\/\*\*|\*|\/\/).*$/, '')
      .replace(/\/\/ .*$/, '')
      .replace(/^import .*\/(time|random)\.js';$/, '');
    return calls.some((call) => call.test(code));
  });

const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !owners.includes(file) && !outside.test(file))
  .map((file) => [file, usesIn(readFileSync(join(src, file), 'utf8'))] as const);

test('no component uses the time or the random numbers of the system', () => {
  expect(files.length).toBeGreaterThan(400);
  expect(files.flatMap(([file, lines]) => lines.map((line) => `${file}: ${line.trim()}`))).toEqual([]);
});

describe('the test finds', () => {
  test.each([
    'const began = performance.now();',
    'return { at: Date.now() };',
    'made_at: new Date().toISOString(),',
    'const since = process.hrtime.bigint();',
    'timer = setTimeout(work, 10);',
    'setImmediate(() => work());',
    'let timer: NodeJS.Timeout | undefined;',
    "import { setTimeout as sleep } from 'node:timers/promises';",
    "const { setTimeout: sleep } = await import('node:timers/promises');",
    'signal: AbortSignal.timeout(1_000),',
    'const share = Math.random() * 2;',
    "import { createHash, randomBytes } from 'node:crypto';",
    'id: randomUUID(),',
    'const at = systemTime.now();',
    'await systemTime.sleep(10);',
    'work(systemTime);',
  ])('%s', (line) => {
    expect(usesIn(line)).toEqual([line]);
  });
});

describe('the test allows', () => {
  test.each([
    "import { systemTime, type Time } from '../time.js';",
    "import { type Random, systemRandom } from '../random.js';",
    'export function createMeter(time = systemTime): Meter {',
    'this.#time = options.time ?? systemTime;',
    '  time: systemTime,',
    'const { time = systemTime, random = systemRandom } = options;',
    'const made = new Date(atMs);',
    'socket.setTimeout(1_000, end);',
    '// Unlike setTimeout, it never fires early.',
  ])('%s', (line) => {
    expect(usesIn(line)).toEqual([]);
  });
});
