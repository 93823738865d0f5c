import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cleanText, isTextKey, languages, textIn } from '../../src/rules/identity_texts.js';

test('interface §2: a bot has texts in exactly seven languages and a default text', () => {
  expect([...languages].sort()).toEqual(['en', 'hy', 'kk', 'ru', 'tg', 'tt', 'uz']);
  for (const key of ['', ...languages]) expect(isTextKey(key)).toBe(true);
  for (const key of ['RU', 'en-US', 'de', ' ru', 'toString', '__proto__']) expect(isTextKey(key)).toBe(false);
});

test.each([
  [' a b ', 'a b'],
  ['a\r\nb', 'a\nb'],
  ['', ''],
  [' \r\n\t', ''],
  ['\u200b\u3164', ''],
  ['👩‍👩‍👧', '👩‍👩‍👧'],
])('the bot text %j is stored as %j', (given, kept) => expect(cleanText(given)).toBe(kept));

test('cleaning a bot text a second time does not change it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => cleanText(cleanText(text)) === cleanText(text)),
  );
});

test("a reader sees the bot text in the reader's language, or else the default text, or else the fallback", () => {
  const texts = { '': 'default', ru: 'р' };
  expect(textIn(texts, 'ru', 'x')).toBe('р');
  for (const language of ['kk', 'de', 'toString', '', null, undefined])
    expect(textIn(texts, language, 'x')).toBe('default');
  expect(textIn({ ru: 'р' }, 'kk', 'x')).toBe('x');
  expect(textIn({ ru: 'р' }, null, 'x')).toBe('x');
  expect(textIn({}, 'toString', 'x')).toBe('x');
});
