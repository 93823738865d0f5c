import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/errors.js';
import { limits } from '../../../src/limits.js';
import { type EntityInput, formatText } from '../../../src/rules/entities/format.js';

function refusal(text: string, entities: EntityInput[]): string {
  try {
    formatText(text, undefined, entities);
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
  return 'no refusal';
}

const marked = (text: string, entities: EntityInput[]) => [...formatText(text, undefined, entities).entities];
const at = (type: string, offset: number, length: number) => ({ type, offset, length });

describe('explicit entities', () => {
  it('explicit entities are ignored if a call also names a parse mode', () => {
    expect(formatText('<b>a</b>', 'HTML', [at('italic', 0, 1)]).entities).toEqual([at('bold', 0, 1)]);
  });

  it.each([
    [at('bold', -1, 1), 'Receive an entity with incorrect offset'],
    [at('bold', 0.5, 1), 'Receive an entity with incorrect offset'],
    [at('bold', 0, -1), 'Receive an entity with incorrect length'],
    [
      at('bold', 3, 2),
      'Entity beginning at UTF-16 offset 3 ends after the end of the text at UTF-16 offset 4',
    ],
    [at('bold', 2, 1), 'Entity begins in a middle of a UTF-16 symbol at byte offset 1'],
    [at('bold', 0, 2), 'Entity ends in a middle of a UTF-16 symbol at byte offset 1'],
    [at('blink', 0, 1), 'Unsupported type specified'],
    [at('text_link', 0, 1), 'Field "url" must be a non-empty string'],
    [at('text_mention', 0, 1), 'Field "user" must name a user by its identifier'],
    [at('custom_emoji', 0, 1), 'Invalid custom emoji identifier specified'],
  ])('the explicit entity %j is refused', (entity, reason) => {
    expect(refusal('a👍b', [entity])).toBe(`Bad Request: can't parse entities: ${reason}`);
  });

  it('each explicit entity keeps only the fields of its type', () => {
    const extra = { url: 'https://e.org', user: { id: 7 }, language: 'c', custom_emoji_id: '5' };
    expect(
      marked('a b c d e', [
        { ...at('pre', 0, 1), ...extra },
        { ...at('text_link', 2, 1), ...extra },
        { ...at('text_mention', 4, 1), ...extra },
        { ...at('custom_emoji', 6, 1), ...extra },
        { ...at('bold', 8, 1), ...extra },
      ]),
    ).toEqual([
      { ...at('pre', 0, 1), language: 'c' },
      { ...at('text_link', 2, 1), url: 'https://e.org/' },
      { ...at('text_mention', 4, 1), user: { id: 7 } },
      { ...at('custom_emoji', 6, 1), custom_emoji_id: '5' },
      at('bold', 8, 1),
    ]);
  });

  it('empty entities are dropped, and so are links with unsafe addresses', () => {
    expect(marked('ab', [{ ...at('text_link', 0, 1), url: 'javascript:x' }, at('bold', 1, 0)])).toEqual([]);
  });

  it('explicit entities of a computed type are ignored, because the text alone determines these types', () => {
    expect(marked('word @name', [at('mention', 0, 4), at('phone_number', 0, 4)])).toEqual([
      at('mention', 5, 5),
    ]);
  });

  it('trimming white space before an entity changes its offset', () => {
    expect(formatText(' \n ab \n', undefined, [at('bold', 4, 3)])).toEqual({
      text: 'ab',
      entities: [at('bold', 1, 1)],
    });
  });

  it('entities are sorted by offset, and entities with the same offset by length, longest first', () => {
    expect(marked('abc', [at('italic', 1, 1), at('underline', 0, 1), at('bold', 0, 3)])).toEqual([
      at('bold', 0, 3),
      at('underline', 0, 1),
      at('italic', 1, 1),
    ]);
  });

  it('a style is split if it crosses another style', () => {
    expect(marked('abcdef', [at('bold', 0, 4), at('italic', 2, 4)])).toEqual([
      at('bold', 0, 4),
      at('italic', 2, 2),
      at('italic', 4, 2),
    ]);
  });

  it('a style is split at the edges of quotes and links', () => {
    const link = { ...at('text_link', 3, 2), url: 'http://e.org/' };
    expect(marked('abcdefgh', [at('blockquote', 2, 4), at('bold', 0, 4), link])).toEqual([
      at('bold', 0, 2),
      at('blockquote', 2, 4),
      at('bold', 2, 1),
      link,
      at('bold', 3, 1),
    ]);
  });

  it('if two links overlap, the second link is dropped', () => {
    const link = { ...at('text_link', 0, 2), url: 'http://e.org/' };
    expect(marked('abc', [{ ...link, offset: 1 }, link])).toEqual([link]);
  });

  it('a link is dropped if it crosses the end of a quote', () => {
    const link = { ...at('text_link', 2, 3), url: 'http://e.org/' };
    expect(marked('abcdef', [at('blockquote', 0, 3), link])).toEqual([at('blockquote', 0, 3)]);
    expect(marked('abcdef', [link, at('blockquote', 3, 1)])).toEqual([link]);
  });

  it('only the first hundred entities are kept', () => {
    const text = 'a '.repeat(200);
    const many = Array.from({ length: 150 }, (_, i) => at('bold', 2 * i, 1));
    const kept = marked(text, many);
    expect(kept).toEqual(many.slice(0, limits.entities_max));
    expect(formatText('<b>a</b> '.repeat(150), 'HTML').entities).toEqual(kept);
    expect(formatText('#a '.repeat(150)).entities).toHaveLength(limits.entities_max);
  });

  it('adjacent entities of one style are joined before the entities are counted', () => {
    expect(formatText('<b>a</b>'.repeat(150), 'HTML').entities).toEqual([at('bold', 0, 150)]);
  });
});

describe('entities are computed from the text even if a call gives explicit entities', () => {
  it.each([
    ['<code>/a</code> <pre>/b</pre> <a href="e.org">/c</a> /d', ['code', 'pre', 'text_link', 'bot_command']],
    ['<a href="e.org">x</a>.example.com', ['text_link']],
    ['<blockquote>@na</blockquote>me', ['blockquote']],
    ['<blockquote>@name</blockquote>', ['blockquote', 'mention']],
    ['<b>@name</b>', ['mention', 'bold']],
    ['<b>@na</b>me', ['mention', 'bold']],
    ['<b>x @na</b>me', ['bold', 'mention', 'bold']],
  ])('the computed entities are found in %s', (source, expected) => {
    expect(formatText(source, 'HTML').entities.map(({ type }) => type)).toEqual(expected);
  });
});
