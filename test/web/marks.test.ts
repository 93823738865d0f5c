/** Tests how the composer turns typed marks into entities, and entities back into marks (decision 0080). */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { linkEntity } from '../../src/rules/entities/entity.js';
import { formatText } from '../../src/rules/entities/format.js';
import { isLink, readMarks, writeMarks } from '../../src/web/client/model/marks.js';

type Read = ReturnType<typeof readMarks>;

/** Returns each entity as its type and its text. */
const shown = ({ text, entities }: Read) =>
  entities.map(({ type, offset, length }) => `${type}: ${text.slice(offset, offset + length)}`);

test.each([
  ['**a** _b_ ++c++ ~~d~~ ||e|| `f`', 'a b c d e f', 'bold italic underline strikethrough spoiler code'],
  ['**_both_**', 'both', 'bold italic'],
  ['(**a**), “_b_”!', '(a), “b”!', 'bold italic'],
  ['un{**believ**}able', 'unbelievable', 'bold'],
  ['{** a **}', ' a ', 'bold'],
  ['{x: **a**}', '{x: a}', 'bold'],
  ['[a _b_](https://example.org/c_(d))', 'a b', 'text_link italic'],
  ['[Ann](tg://user?id=5), hi', 'Ann, hi', 'text_mention'],
  ['> one\n> **two**\n>\n> three\nfour', 'one\ntwo\n\nthree\nfour', 'blockquote bold'],
  ['{>one<} {>>two<}', 'one two', 'blockquote expandable_blockquote'],
  ['```ts\nlet a = `**b**`;\n```\nafter', 'let a = `**b**`;\nafter', 'pre'],
  ['```a b```', 'a b', 'pre'],
  ['`**a**`', '**a**', 'code'],
  ['{`a\\`b`}c', 'a`bc', 'code'],
  ['**שלום** _עולם_', 'שלום עולם', 'bold italic'],
  ['{=**a**=} **b**', '**a** b', 'bold'],
])('%s is read as text with entities', (source, text, types) => {
  const read = readMarks(source);
  expect([read.text, read.entities.map(({ type }) => type).join(' ')]).toEqual([text, types]);
});

test.each([
  'snake_case and __init__ and _private',
  '2**3**4, 2 * 3, a || b, i++ + ++j, ~5',
  '¯\\_(ツ)_/¯ -_- >_< ^_^ o_O ____ *** ~~~~',
  'https://example.org/_a_/b_c_?d=(_e_)',
  'f(**kwargs) and g(**kwargs)',
  '[a](b) [c]() [](https://example.org) {****}',
  '**open, _open, ||open, `open, {>open, {=open',
  '\\\\server\\_share >:( a > b\n>:)\n> \n>',
  'C:\\_temp\\_x',
  'it`s a`s',
])('%s has no marks', (source) => {
  expect(readMarks(source)).toEqual({ text: source, entities: [] });
});

test('entities cover exactly the marked text, in UTF-16 code units', () => {
  const read = readMarks('😀 **a😀** > _b_\n> c **d**');
  expect(shown(read)).toEqual(['bold: a😀', 'italic: b', 'blockquote: c d', 'bold: d']);
  expect(readMarks('```ts\na\n```').entities).toEqual([
    { type: 'pre', offset: 0, length: 1, language: 'ts' },
  ]);
});

test('a mark that begins outside of another mark cannot end inside the other mark', () => {
  expect(shown(readMarks('**a _b** c_'))).toEqual(['bold: a _b']);
  expect(shown(readMarks('**a\n> b** c'))).toEqual(['blockquote: b** c']);
});

test('the composer does not look for marks in a very long text', () => {
  const source = '**a** '.repeat(6_000);
  expect(readMarks(source)).toEqual({ text: source, entities: [] });
});

test('the composer accepts the links that the service accepts', () => {
  const targets = ['example.org', 'http://a', 'https://a.b/c', 'a.b:80/x', 'ftp://a.b', 'tg://resolve?x=1'];
  const more = ['javascript:alert(1)', 'mailto:a@b.c', 'https://[::1]/x', '[::1]', 'a', 'https://', 'x:y'];
  for (const target of [...targets, ...more])
    expect(isLink(target), target).toBe(linkEntity(0, 1, target) !== null);
});

const words = fc.string({
  unit: fc.constantFrom(
    ...['a', 'b', ' ', '\n', '*', '**', '_', '++', '~~', '||', '|', '`', '```', '[', ']', '(', ')', '{', '}'],
    ...['{**', '_}', '{=', '=}', '=', '{>', '<}', '> ', '\\', '://', 'https://', '](a.b)', '😀', 'ש', '.'],
  ),
  maxLength: 30,
});
const types = ['bold', 'italic', 'underline', 'strikethrough', 'spoiler', 'code', 'pre'] as const;
const others = ['blockquote', 'expandable_blockquote', 'text_link', 'text_mention', 'custom_emoji'] as const;

test('text and entities from the service survive being written as marks and read again', () => {
  const range = fc.tuple(fc.constantFrom(...types, ...others), fc.nat(40), fc.integer({ min: 1, max: 40 }));
  fc.assert(
    fc.property(words, fc.array(range, { maxLength: 6 }), (given, ranges) => {
      const fields = { url: 'https://a.b/(c)>', user: { id: 7 }, language: 'c sharp', custom_emoji_id: '9' };
      const splits = (at: number) => /[\udc00-\udfff]/.test(given.charAt(at));
      const fitting = ranges
        .map(([type, offset, length]) => ({ type, offset, length, ...fields }))
        .filter(({ offset, length }) => offset + length <= given.length)
        .filter(({ offset, length }) => !splits(offset) && !splits(offset + length));
      const { text, entities } = formatText(given, undefined, fitting);
      const wanted = entities.filter(({ type }) => [...types, ...others].includes(type as 'bold'));
      const source = writeMarks(text, entities as never);
      const read = readMarks(source);
      expect(read.text, source).toBe(text);
      const order = (list: readonly object[]) => list.map((one) => JSON.stringify(one)).sort();
      const plain = wanted.map((entity) => JSON.parse(JSON.stringify(entity)));
      const sortedKeys = (one: object) => Object.fromEntries(Object.entries(one).sort());
      expect(order(read.entities.map(sortedKeys)), source).toEqual(order(plain.map(sortedKeys)));
    }),
    { numRuns: 2_000 },
  );
});

test('code in an expandable quote stays in the quote', () => {
  for (const type of ['code', 'pre'] as const) {
    const entities = [
      { type: 'expandable_blockquote', offset: 0, length: 1 },
      { type, offset: 0, length: 1 },
    ] as const;
    expect(readMarks(writeMarks('a', entities))).toEqual({ text: 'a', entities });
  }
});

test.each(['a\nb', 'a`b', '\n', ' a '])('the language %j of a code block never becomes text', (language) => {
  const source = writeMarks('x = 1', [{ type: 'pre', offset: 0, length: 5, language }]);
  expect(readMarks(source)).toMatchObject({
    text: 'x = 1',
    entities: [{ type: 'pre', offset: 0, length: 5 }],
  });
});

test('a text without entities is written as it is, unless a part of it would be read as marks', () => {
  expect(writeMarks('snake_case *a* 1 > 0')).toBe('snake_case *a* 1 > 0');
  expect(writeMarks('see **a**')).toBe('{=see **a**=}');
  expect(writeMarks('see a', [{ type: 'bold', offset: 4, length: 1 }])).toBe('see **a**');
});
