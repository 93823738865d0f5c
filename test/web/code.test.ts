/** Tests the colours of code blocks: the library behind the worker, and the time limit of the worker. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { languageNames, languageOf } from '../../src/web/client/code/languages.js';

type Part = readonly [length: number, colour: string];
interface Colourist {
  postMessage(job: { language: string; code: string }): void;
  onmessage: ((event: { data: readonly Part[] }) => void) | null;
  onerror: ((event: never) => void) | null;
  terminate(): void;
}
interface Highlighter {
  known(name: string, code: string): readonly Part[] | null | undefined;
  find(name: string, code: string): Promise<readonly Part[] | null>;
}

// The library and the application need the browser type definitions, and tests are compiled without these definitions.
const code = '../../src/web/client/code';
const { partsOf }: { partsOf(language: string, code: string): Part[] } = await import(`${code}/colours.ts`);
const {
  Highlighter: Made,
  job_ms_max,
  code_length_max,
}: {
  Highlighter: new (open: () => Colourist) => Highlighter;
  job_ms_max: number;
  code_length_max: number;
} = await import(`${code}/highlighter.ts`);

const drawn = (language: string, code: string) => {
  let at = 0;
  return partsOf(language, code).map(([length, colour]) => {
    at += length;
    return [code.slice(at - length, at), colour];
  });
};

describe('code colours', () => {
  test('the coloured parts of a code block cover the whole code in every language, and no part is empty', () => {
    const code = `a = "b" // 1 <c d="e">&lt;</c>\n# f\n+ g\n😀 \${h} '\${i}' /* j`;
    for (const language of languageNames) {
      const parts = partsOf(language, code);
      expect(
        parts.reduce((sum, [length]) => sum + length, 0),
        language,
      ).toBe(code.length);
      expect(parts.every(([length]) => length > 0)).toBe(true);
    }
  });

  test('keywords, strings, comments, numbers and names have colours', () => {
    expect(drawn('typescript', `const a: string = \`b\${c}\`; // 1`)).toEqual([
      ['const', 'keyword'],
      [' ', ''],
      ['a', 'name'],
      [': ', ''],
      ['string', 'name'],
      [' = ', ''],
      ['`b', 'string'],
      [`\${c}`, ''],
      ['`', 'string'],
      ['; ', ''],
      ['// 1', 'comment'],
    ]);
    expect(drawn('diff', '-a\n+b')).toEqual([
      ['-a', 'removed'],
      ['\n', ''],
      ['+b', 'added'],
    ]);
  });

  test('code is coloured under every known name of its language, and is not coloured if the language is unknown', () => {
    for (const [name, language] of [
      ['ts', 'typescript'],
      ['TS ', 'typescript'],
      ['py', 'python'],
      ['html', 'xml'],
      ['c++', 'cpp'],
      ['go', 'go'],
      ['', undefined],
      ['constructor', undefined],
      ['brainfuck', undefined],
    ] as const)
      expect(languageOf(name), name).toBe(language);
  });
});

class FakeWorker implements Colourist {
  readonly jobs: Array<{ language: string; code: string }> = [];
  onmessage: Colourist['onmessage'] = null;
  onerror: Colourist['onerror'] = null;
  isEnded = false;

  postMessage(job: { language: string; code: string }): void {
    this.jobs.push(job);
  }

  terminate(): void {
    this.isEnded = true;
  }

  answer(parts: readonly Part[]): void {
    this.onmessage?.({ data: parts });
  }
}

describe('the highlighter', () => {
  let workers: FakeWorker[];
  let highlighter: Highlighter;
  const parts: readonly Part[] = [[1, 'name']];
  const last = () => workers.at(-1) as FakeWorker;

  beforeEach(() => {
    vi.useFakeTimers();
    workers = [];
    highlighter = new Made(() => {
      const worker = new FakeWorker();
      workers.push(worker);
      return worker;
    });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('the highlighter starts no worker for an unknown language or for long code', async () => {
    expect(await highlighter.find('unknown', 'a')).toBeNull();
    expect(highlighter.known('unknown', 'a')).toBeNull();
    expect(await highlighter.find('js', 'a'.repeat(code_length_max + 1))).toBeNull();
    expect(workers).toEqual([]);
  });

  test('the highlighter sends one code block at a time to one worker, and remembers the answers', async () => {
    const found = [highlighter.find('js', 'a'), highlighter.find('py', 'b'), highlighter.find('js', 'a')];
    expect(last().jobs).toEqual([{ language: 'javascript', code: 'a' }]);
    last().answer(parts);
    expect(last().jobs).toHaveLength(2);
    last().answer([]);
    expect(await Promise.all(found)).toEqual([parts, [], parts]);
    expect(highlighter.known('javascript', 'a')).toEqual(parts);
    expect(highlighter.known('js', 'c')).toBeUndefined();
    expect(await highlighter.find('js', 'a')).toEqual(parts);
    expect(last().jobs).toHaveLength(2);
    expect(workers).toHaveLength(1);
  });

  test('the highlighter ends a worker that takes too long, and continues with the next code block', async () => {
    const [slow, next] = [highlighter.find('js', 'slow'), highlighter.find('js', 'next')];
    vi.advanceTimersByTime(job_ms_max);
    expect(await slow).toBeNull();
    expect(workers.map(({ isEnded }) => isEnded)).toEqual([true, false]);
    last().answer(parts);
    expect(await next).toEqual(parts);
    expect(await highlighter.find('js', 'slow')).toBeNull();
    expect(workers).toHaveLength(2);
    vi.advanceTimersByTime(10 * job_ms_max);
    expect(last().isEnded).toBe(false);
  });

  test('the highlighter replaces a worker that cannot be loaded', async () => {
    const found = highlighter.find('js', 'a');
    last().onerror?.(undefined as never);
    expect(await found).toBeNull();
    const other = highlighter.find('js', 'b');
    last().answer(parts);
    expect(await other).toEqual(parts);
    expect(workers.map(({ isEnded }) => isEnded)).toEqual([true, false]);
  });

  test('the highlighter refuses code while too many code blocks wait', async () => {
    const found = Array.from({ length: 300 }, (_, i) => highlighter.find('js', `${i}`));
    expect(await Promise.race(found)).toBeNull();
    while (last().onmessage) last().answer(parts);
    expect((await Promise.all(found)).filter((one) => one !== null)).toHaveLength(201);
  });
});
