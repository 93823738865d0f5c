/** Tests how the formatting buttons of the composer change the text, and which members a typed `@` finds. */
import { expect, test } from 'vitest';
import { type Format, formatKeys, formatOfKey, formats } from '../../src/web/client/model/format_keys.js';
import { formatChange } from '../../src/web/client/model/formats.js';
import { readMarks } from '../../src/web/client/model/marks.js';
import { mentionable, mentionChange } from '../../src/web/client/model/mentions.js';
import { typedMention } from '../../src/web/client/model/typed_mention.js';

/**
 * Formats the part of `given` between the signs « and ». Returns the result, in which these signs mark the selection.
 */
function formatted(format: Format, given: string): string {
  const [before = '', inner = '', after = ''] = given.split(/[«»]/);
  const text = before + inner + after;
  const change = formatChange(format, text, before.length, before.length + inner.length);
  const result = text.slice(0, change.from) + change.insert + text.slice(change.to);
  const [from, to] = change.selection;
  return `${result.slice(0, from)}«${result.slice(from, to)}»${result.slice(to)}`;
}

test.each<[Format, string, string]>([
  ['bold', 'a «b» c', 'a **«b»** c'],
  ['bold', 'a« b »c', 'a **«b»** c'],
  ['bold', 'a **«b»** c', 'a «b» c'],
  ['bold', 'a «**b**» c', 'a «b» c'],
  ['bold', 'un«believ»able', 'un{**«believ»**}able'],
  ['bold', 'un{**«believ»**}able', 'un«believ»able'],
  ['bold', '«»', '**«»**'],
  ['bold', '**«»**', '«»'],
  ['italic', '**«b»**', '**_«b»_**'],
  ['italic', '«שלום»', '_«שלום»_'],
  ['italic', 'snake_«case»_x', 'snake_{_«case»_}_x'],
  ['underline', '«b»', '++«b»++'],
  ['strikethrough', '«b»', '~~«b»~~'],
  ['spoiler', '«b»', '||«b»||'],
  ['code', '«b»', '`«b»`'],
  ['code', '`«b»`', '«b»'],
  ['code', 'x«a`b»', 'x{`«a\\`b»`}'],
  ['pre', 'a «b» c', 'a \n```\n«b»\n```\n c'],
  ['pre', '«a\nb»', '```\n«a\nb»\n```'],
  ['pre', '«a ``` b»', '````\n«a ``` b»\n````'],
  ['pre', '```ts\n«a»\n```', '«a»'],
  ['quote', 'a\nb«c\nd»e\nf', 'a\n«> bc\n> de»\nf'],
  ['quote', '«> a\n> b»', '«a\nb»'],
  ['quote', 'a«»b', '> ab«»'],
  ['quote', '«a\n\nb»', '«> a\n>\n> b»'],
  ['quote', '«»', '> «»'],
  ['link', 'see «this» now', 'see [this](«https://») now'],
  ['link', '«https://example.org»', '[«»](https://example.org)'],
  ['link', '«[this](https://example.org)»', '«this»'],
  ['link', '«»', '[«»](https://)'],
])('%s changes %s to %s', (format, given, wanted) => {
  expect(formatted(format, given)).toBe(wanted);
});

test('each format makes one entity of a selection inside a word, beside white space or in quotation marks', () => {
  const types = { quote: 'blockquote', link: 'text_link' } as Record<Format, string>;
  for (const format of formats)
    for (const given of ['a «b» c', 'a«b»c', '“«b»”', '«b c»', 'a\n«b»\nc', '« b»', '«中文»', 'é«é»é']) {
      const source = formatted(format, given).replace(/[«»]/g, '').replace('(https://)', '(https://a.b)');
      expect(readMarks(source).entities.map(({ type }) => type)).toEqual([types[format] ?? format]);
    }
});

const key = (pressed: string, code: string, more: object = {}) => ({
  ...{ key: pressed, code, ctrlKey: true, metaKey: false, shiftKey: false, altKey: false },
  ...more,
});

test('a keyboard shortcut formats text on every keyboard layout, and only with Ctrl or ⌘', () => {
  expect(formatOfKey(key('b', 'KeyB'))).toBe('bold');
  expect(formatOfKey(key('и', 'KeyB'))).toBe('bold');
  expect(formatOfKey(key('b', 'KeyN'))).toBe('bold');
  expect(formatOfKey(key('k', 'KeyK', { ctrlKey: false, metaKey: true }))).toBe('link');
  expect(formatOfKey(key('X', 'KeyX', { shiftKey: true }))).toBe('strikethrough');
  expect(formatOfKey(key('>', 'Period', { shiftKey: true }))).toBe('quote');
  // In the Dvorak layout, the letter V and the full stop are on other keys than in the QWERTY layout.
  expect(formatOfKey(key('V', 'Period', { shiftKey: true }))).toBeUndefined();
  expect(formatOfKey(key('>', 'KeyE', { shiftKey: true }))).toBe('quote');
  expect(formatOfKey(key('x', 'KeyX'))).toBeUndefined();
  expect(formatOfKey(key('b', 'KeyB', { ctrlKey: false }))).toBeUndefined();
  expect(formatOfKey(key('b', 'KeyB', { altKey: true }))).toBeUndefined();
  expect(new Set(Object.values(formatKeys)).size).toBe(formats.length);
});

const person = (id: number, first_name: string, username?: string, last_name?: string) => ({
  ...{ id, is_bot: false, first_name },
  ...(username && { username }),
  ...(last_name && { last_name }),
});
const ann = person(1, 'Ann', 'keeper');
const boris = person(2, 'Борис', undefined, 'Ёлкин');
const bot = { ...person(3, 'Guide', 'guide_bot'), is_bot: true };
const members = [ann, boris, bot];
const found = (typed: string, own = 9) => mentionable(typed, members, [], own).map(({ id }) => id);

test('a mention is typed after `@` at the beginning of a word', () => {
  expect(typedMention('hi @an', 6)).toBe('an');
  expect(typedMention('(@', 2)).toBe('');
  expect(typedMention('hi @an x', 6)).toBe('an');
  expect(typedMention('@Ёл', 3)).toBe('Ёл');
  for (const [text, caret] of [
    ['a@b', 3],
    ['@a b', 4],
    ['@a', 0],
    [`@${'a'.repeat(33)}`, 34],
  ] as const)
    expect(typedMention(text, caret)).toBeUndefined();
});

test('members are found by username and by each word of their name, but the person who types is not found', () => {
  expect(found('')).toEqual([1, 2, 3]);
  expect(found('KEE')).toEqual([1]);
  expect(found('ёл')).toEqual([2]);
  expect(found('gu')).toEqual([3]);
  expect(found('uide')).toEqual([]);
  expect(found('', 1)).toEqual([2, 3]);
});

test('the list of suggested members has at most 20 members, and members who wrote most recently come first', () => {
  const many = Array.from({ length: 30 }, (_, id) => person(100 + id, 'Many'));
  const messages = [many[5], bot, person(7, 'Guest')].map((from) => ({ from }));
  const listed = mentionable('', many, messages as never, 9);
  expect(listed).toHaveLength(20);
  expect(listed.slice(0, 4).map(({ id }) => id)).toEqual([7, 3, 105, 100]);
});

test('a member is mentioned by username, or by id if the member has no username', () => {
  expect(mentionChange(ann, 'ke', 6)).toEqual({ from: 3, to: 6, insert: '@keeper ', selection: [11, 11] });
  const { insert } = mentionChange({ ...boris, last_name: '[**x**](a.b)' }, '', 1);
  expect(readMarks(insert)).toEqual({
    text: 'Борис [**x**](a.b) ',
    entities: [{ type: 'text_mention', offset: 0, length: 18, user: { id: 2 } }],
  });
});
