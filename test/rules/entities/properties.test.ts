import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/errors.js';
import { limits } from '../../../src/limits.js';
import type { FormattedText } from '../../../src/rules/entities/entity.js';
import { formatText } from '../../../src/rules/entities/format.js';
import { propertyRuns } from '../../support/property_runs.js';
import { processorMs } from '../../support/times.js';

const runs = { numRuns: propertyRuns(500) };

// The tests build texts from these pieces and from random texts.
const pieces = [
  '<b>',
  '</b>',
  '<i>',
  '</i>',
  '<a href="e.org">',
  '</a>',
  '<code>',
  '</code>',
  '<pre>',
  '</pre>',
  '<blockquote>',
  '</blockquote>',
  '&lt;',
  '&#65;',
  '*',
  '_',
  '__',
  '~',
  '||',
  '`',
  '```',
  '[',
  '](e.org)',
  '![',
  '](tg://emoji?id=1)',
  '>',
  '\n',
  '\n>',
  '\\',
  '**',
  ' ',
  '/cmd',
  '@name',
  '#tag',
  'e.org',
  'http://e.org/x',
  'me@e.org',
  '👍',
  'я',
  'a',
];
const wild = fc.oneof(
  fc.array(fc.constantFrom(...pieces), { maxLength: 30 }).map((parts) => parts.join('')),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
);
const types = [
  'bold',
  'italic',
  'spoiler',
  'blockquote',
  'expandable_blockquote',
  'code',
  'pre',
  'text_link',
  'custom_emoji',
];
const values = { url: 'http://e.org', custom_emoji_id: '1' };

function expectValid({ text, entities }: FormattedText): void {
  expect(entities.length).toBeLessThanOrEqual(limits.entities_max);
  const open: { end: number; type: string }[] = [];
  entities.forEach((entity, i) => {
    const { type, offset, length } = entity;
    const end = offset + length;
    expect(offset).toBeGreaterThanOrEqual(0);
    expect(length).toBeGreaterThan(0);
    expect(end).toBeLessThanOrEqual(text.length);
    for (const edge of [offset, end]) {
      expect(/[\ud800-\udbff]$/.test(text.slice(0, edge)) && /^[\udc00-\udfff]/.test(text.slice(edge))).toBe(
        false,
      );
    }
    const former = entities[i - 1];
    if (former) {
      expect(former.offset < offset || (former.offset === offset && former.length >= length)).toBe(true);
    }
    while (open.length > 0 && open.at(-1)!.end <= offset) open.pop();
    if (open.length > 0) expect(end).toBeLessThanOrEqual(open.at(-1)!.end);
    const outer = open.map((one) => one.type);
    expect(outer).not.toContain(type);
    expect(outer).not.toContain('code');
    expect(outer).not.toContain('pre');
    if (type.endsWith('blockquote')) expect(outer.some((one) => one.endsWith('blockquote'))).toBe(false);
    open.push({ end, type });
  });
}

describe('properties of entities', () => {
  it.each(['HTML', 'MarkdownV2', 'Markdown', ''])(
    'parsing with mode %j returns valid entities or throws an ApiError',
    (mode) => {
      fc.assert(
        fc.property(wild, (source) => {
          let result: FormattedText;
          try {
            result = formatText(source, mode);
          } catch (error) {
            expect(error).toBeInstanceOf(ApiError);
            expect((error as ApiError).kind).toBe('entities_unparsable');
            return;
          }
          expectValid(result);
          expect(result.text).toBe(result.text.trimEnd());
        }),
        runs,
      );
    },
  );

  it('overlapping explicit entities are made valid', () => {
    const range = fc.record({
      type: fc.constantFrom(...types),
      offset: fc.nat({ max: 20 }),
      length: fc.nat({ max: 12 }),
    });
    fc.assert(
      fc.property(fc.array(range, { maxLength: 12 }), (ranges) => {
        const given = ranges.map((entity) => ({ ...entity, ...values }));
        const once = formatText(' ab @name #tag 👍 e.org /cmd and more', undefined, dropSplit(given));
        expectValid(once);
        expect(formatText(once.text, undefined, [...once.entities])).toEqual(once);
      }),
      runs,
    );
  });

  const htmlEscaped = (text: string) => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
  const htmlNamed = (text: string) =>
    text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
  const markdownEscaped = (text: string) => text.replace(/[_*[\]()~`>#+\-=|{}.!\\]/g, '\\$&');

  it.each([
    ['HTML', htmlNamed],
    ['HTML', htmlEscaped],
    ['MarkdownV2', markdownEscaped],
  ] as const)('parsing a text escaped for %s returns the original text', (mode, escaped) => {
    fc.assert(
      fc.property(wild, (text) => {
        expect(formatText(escaped(text), mode)).toEqual(formatText(text));
        expect(formatText(text).text).toBe(text.trim());
      }),
      runs,
    );
  });

  it('parsing escaped text inside a style returns the original text', () => {
    fc.assert(
      fc.property(wild, (text) => {
        const plain = `x${text}x`;
        for (const [source, mode] of [
          [`<b>${htmlNamed(plain)}</b>`, 'HTML'],
          [`*${markdownEscaped(plain)}*`, 'MarkdownV2'],
        ] as const) {
          const result = formatText(source, mode);
          expect(result.text).toBe(plain);
          const bold = result.entities.filter(({ type }) => type === 'bold');
          expect(bold.reduce((sum, { length }) => sum + length, 0)).toBe(plain.length);
        }
      }),
      runs,
    );
  });
});

/** Drops entities that would split the emoji of the sample text. */
function dropSplit<T extends { offset: number; length: number }>(given: T[]): T[] {
  const inside = ' ab @name #tag 👍'.length - 1;
  return given.filter(({ offset, length }) => offset !== inside && offset + length !== inside);
}

it('formatting takes linear time, whatever text is repeated', () => {
  const units = [
    '<b>',
    '<b>a</b>',
    '</b>',
    '&',
    '&lt',
    '*a*',
    '*',
    '_a_',
    '`',
    '```',
    '[',
    '[a](b)',
    '\n>',
    '>a\n',
    '||a||',
    '![',
    '\\',
    ' ',
  ];
  for (const unit of units) {
    const source = unit.repeat(Math.ceil(200_000 / unit.length));
    for (const mode of ['HTML', 'MarkdownV2', 'Markdown', '']) {
      const took = processorMs(() => {
        try {
          formatText(source, mode);
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError);
        }
      });
      // Linear work takes some ten milliseconds, and quadratic work would take many seconds.
      expect(took, `${mode} ${unit}`).toBeLessThan(1_500);
    }
  }
});
