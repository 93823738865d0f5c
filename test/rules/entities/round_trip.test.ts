/**
 * Writes random trees of entities in a parse mode and parses the result. The parsed text and entities must be the same.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Entity, EntityType } from '../../../src/rules/entities/entity.js';
import { type EntityInput, formatText } from '../../../src/rules/entities/format.js';
import { propertyRuns } from '../../support/property_runs.js';

interface Tree {
  readonly type: EntityType;
  readonly values: Partial<Entity>;
  readonly content: Content;
}
type Content = ReadonlyArray<string | Tree>;

// Words and marks in which no entities are found. Every piece of text begins and ends with a word.
const words = ['q', 'xx', 'я', '👍', '👩‍👩‍👧', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', 'ß', 'e\u0301', '1', '𝒳'];
const marks = [
  ...'*_~`[]()><&+-=|{}!\\"\'',
  ' ',
  '\n',
  '. ',
  '# ',
  '||',
  '__',
  '```',
  '&lt;',
  '](',
  '</b>',
  '>\n>',
];
const piece = (lines: boolean): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.constantFrom(...words),
      fc.array(fc.constantFrom(...words, ...marks), { maxLength: 5 }),
      fc.constantFrom(...words),
    )
    .map(([first, between, last]) => {
      const text = first + between.join('') + last;
      return lines ? text : text.replaceAll('\n', ' ');
    });

const styles = ['bold', 'italic', 'underline', 'strikethrough', 'spoiler'] as const;
const links = ['text_link', 'text_mention', 'custom_emoji'] as const;
const isLink = (type: EntityType) => (links as readonly EntityType[]).includes(type);

const valuesOf = (type: EntityType): fc.Arbitrary<Partial<Entity>> => {
  switch (type) {
    case 'text_link':
      return fc
        .constantFrom('http://e.org/', 'https://e.org/a(b)?c=d&e="f"#g', 'https://e.org/x\\y')
        .map((url) => ({ url }));
    case 'text_mention':
      return fc.integer({ min: 1, max: 1e9 }).map((id) => ({ user: { id } }));
    case 'custom_emoji':
      return fc.integer({ min: 1, max: 1e9 }).map((id) => ({ custom_emoji_id: String(id) }));
    case 'pre':
      return fc.constantFrom({}, { language: 'c++' }, { language: 'ts' });
    default:
      return fc.constant({});
  }
};

const tree = (type: EntityType, content: fc.Arbitrary<Content>): fc.Arbitrary<Tree> =>
  fc.record({ type: fc.constant(type), values: valuesOf(type), content }, { noNullPrototype: true });

/** Two adjacent entities of these types need text between them. Otherwise their marks would merge. */
const isLow = (type: EntityType | undefined) => type === 'italic' || type === 'underline';

/**
 * Generates a tree of entities that is allowed inside entities of the types in `outer`. No type occurs twice, a link
 * contains no link, and code occurs only in quotes.
 */
function inner(outer: readonly EntityType[], depth: number): fc.Arbitrary<Tree> {
  const inLink = outer.some(isLink);
  const code = outer.every((type) => type === 'blockquote' || type === 'expandable_blockquote');
  const allowed: EntityType[] = [
    ...styles.filter((type) => !outer.includes(type)),
    ...(inLink ? [] : links),
    ...(code ? (['code'] as const) : []),
  ];
  return fc
    .constantFrom(...allowed)
    .chain((type) =>
      tree(type, type === 'code' ? piece(false).map((text) => [text]) : content([...outer, type], depth)),
    );
}

/**
 * Generates either texts with trees of entities between them, or a single tree. If a tree is alone inside an entity,
 * both have the same range.
 */
function content(outer: readonly EntityType[], depth: number): fc.Arbitrary<Content> {
  const text = piece(true);
  const leaf = text.map((only): Content => [only]);
  if (depth === 0 || outer.length > 4) return leaf;
  const mixed = fc
    .tuple(text, fc.array(fc.tuple(inner(outer, depth - 1), text), { minLength: 1, maxLength: 2 }))
    .map(([first, rest]): Content => [first, ...rest.flat()]);
  const top = outer.at(-1);
  if (top === undefined || top.endsWith('blockquote')) return fc.oneof(leaf, mixed);
  const alone = inner(outer, depth - 1)
    .filter(({ type }) => !(isLow(type) && isLow(top)) && type !== 'code')
    .map((only): Content => [only]);
  return fc.oneof(leaf, mixed, alone);
}

/**
 * Generates paragraphs with quotes and preformatted blocks between them. The line break after a quote belongs to the
 * quote.
 */
const documents: fc.Arbitrary<Content> = fc
  .tuple(
    content([], 3),
    fc.array(
      fc.tuple(
        fc.oneof(
          fc.constantFrom('blockquote' as const, 'expandable_blockquote' as const).chain((type) =>
            tree(
              type,
              content([type], 2).map((inside): Content => [...inside, '\n']),
            ),
          ),
          tree(
            'pre',
            piece(true).map((text) => [text]),
          ),
        ),
        content([], 3),
      ),
      { maxLength: 3 },
    ),
  )
  .map(
    ([first, rest]): Content => [
      ...first,
      ...rest.flatMap(
        ([block, after]): Content => ['\n', block, ...(block.type === 'pre' ? ['\n'] : []), ...after],
      ),
    ],
  );

function plain(
  content: Content,
  offset = 0,
): { readonly text: string; readonly entities: readonly Entity[] } {
  let text = '';
  const entities: Entity[] = [];
  for (const part of content) {
    if (typeof part === 'string') {
      text += part;
      continue;
    }
    const inside = plain(part.content, offset + text.length);
    entities.push({
      type: part.type,
      offset: offset + text.length,
      length: inside.text.length,
      ...part.values,
    });
    entities.push(...inside.entities);
    text += inside.text;
  }
  return { text, entities };
}

const htmlTags: Partial<Record<EntityType, readonly [string, string]>> = {
  bold: ['<b>', '</b>'],
  italic: ['<em>', '</em>'],
  underline: ['<u>', '</u>'],
  strikethrough: ['<s>', '</s>'],
  spoiler: ['<span class="tg-spoiler">', '</span>'],
  code: ['<code>', '</code>'],
  blockquote: ['<blockquote>', '</blockquote>'],
  expandable_blockquote: ['<blockquote expandable>', '</blockquote>'],
};
const htmlText = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

function html(content: Content): string {
  return content
    .map((part) => {
      if (typeof part === 'string') return htmlText(part);
      const { type, values } = part;
      const inside = html(part.content);
      const [open, close] = htmlTags[type] ?? [];
      if (open !== undefined) return open + inside + close;
      if (type === 'custom_emoji')
        return `<tg-emoji emoji-id="${values.custom_emoji_id}">${inside}</tg-emoji>`;
      if (type === 'pre')
        return values.language
          ? `<pre><code class="language-${values.language}">${inside}</code></pre>`
          : `<pre>${inside}</pre>`;
      return `<a href="${htmlText(values.url ?? `tg://user?id=${values.user?.id}`)}">${inside}</a>`;
    })
    .join('');
}

const markdownMarks: Partial<Record<EntityType, string>> = {
  bold: '*',
  italic: '_',
  underline: '__',
  strikethrough: '~',
  spoiler: '||',
};
const escaped = (text: string, marks: RegExp) => text.replace(marks, '\\$&');

function markdown(content: Content, quoted = false): string {
  return content
    .map((part) => {
      if (typeof part === 'string') {
        const text = escaped(part, /[_*[\]()~`>#+\-=|{}.!\\]/g);
        return quoted ? text.replaceAll('\n', '\n>') : text;
      }
      const { type, values } = part;
      const mark = markdownMarks[type];
      if (mark !== undefined) return mark + markdown(part.content, quoted) + mark;
      if (type === 'code' || type === 'pre') {
        const inside = part.content.map((text) => escaped(text as string, /[`\\]/g)).join('');
        return type === 'code' ? `\`${inside}\`` : `\`\`\`${values.language ?? ''}\n${inside}\`\`\``;
      }
      if (type.endsWith('blockquote')) {
        // Leaves out the line break at the end of the quote, because no mark `>` follows it.
        const inside = markdown(part.content.slice(0, -1), true);
        return `>${inside}${type === 'blockquote' ? '' : '||'}\n`;
      }
      const inside = markdown(part.content, quoted);
      if (type === 'custom_emoji') return `![${inside}](tg://emoji?id=${values.custom_emoji_id})`;
      return `[${inside}](${escaped(values.url ?? `tg://user?id=${values.user?.id}`, /[)\\]/g)})`;
    })
    .join('');
}

const sorted = (entities: readonly Entity[]) =>
  entities
    .map(({ type, offset, length, ...values }) => JSON.stringify([offset, -length, type, values]))
    .sort();

describe('round trips', () => {
  it.each([
    ['HTML', html],
    ['MarkdownV2', markdown],
  ] as const)('a tree of entities written as %s is parsed unchanged', (mode, write) => {
    let nested = 0;
    fc.assert(
      fc.property(documents, (given) => {
        const expected = plain(given);
        const read = formatText(write(given), mode);
        expect(read.text).toBe(expected.text);
        expect(sorted(read.entities)).toEqual(sorted(expected.entities));
        nested = Math.max(nested, expected.entities.length);
      }),
      { numRuns: propertyRuns(1_000) },
    );
    expect(nested).toBeGreaterThan(8);
  });

  it('explicit entities that form a tree are kept unchanged', () => {
    fc.assert(
      fc.property(documents, (given) => {
        const { text, entities } = plain(given);
        const read = formatText(text, undefined, entities as EntityInput[]);
        expect(read.text).toBe(text);
        expect(sorted(read.entities)).toEqual(sorted(entities));
      }),
      { numRuns: propertyRuns(1_000) },
    );
  });
});
