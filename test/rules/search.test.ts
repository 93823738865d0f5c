import { expect, test } from 'vitest';
import { ruleLimits as limits } from '../../src/rules/limits.js';
import { containsWords, hexWordPattern, searchWords, wordPattern } from '../../src/rules/search.js';

test('a query is divided into words, which are changed to lower case and listed only once', () => {
  expect(searchWords('  Red\tRED \n fox\u00a0')).toEqual(['red', 'fox']);
  expect(searchWords('ΟΔΟΣ')).toEqual(['οδοσ']);
  const words = Array.from({ length: limits.search_words_max }, (_, n) => `w${n}`);
  expect(searchWords(words.join(' '))).toEqual(words);
});

test('a query without words, or with too many words, is refused', () => {
  const words = Array.from({ length: limits.search_words_max + 1 }, (_, n) => `w${n}`);
  for (const query of ['', ' \n\t', words.join(' ')]) expect(searchWords(query)).toBeNull();
});

test('a message matches if its texts contain every word, even in another case or inside other words', () => {
  const matches = (query: string, ...texts: string[]) => containsWords(texts, searchWords(query) ?? []);
  expect(matches('cat', 'Concatenate')).toBe(true);
  expect(matches('cat dog', 'the DOG chased a cat')).toBe(true);
  expect(matches('cat dog', 'the cat')).toBe(false);
  expect(matches('report pdf', 'the report', 'a.PDF')).toBe(true);
  expect(matches('привет', 'ПРИВЕТ!')).toBe(true);
  expect(matches('οδος', 'ΟΔΟΣ')).toBe(true);
  expect(matches('東京', '私は東京にいます')).toBe(true);
});

test('a pattern escapes its special characters', () => {
  expect(wordPattern('50%_a\\b')).toBe('%50\\%\\_a\\\\\\\\b%');
  expect(wordPattern('п')).toBe('%\\\\320\\\\2_7%');
});

test('in a hexadecimal search pattern, a wildcard replaces each digit that differs between the upper and lower case of a letter', () => {
  expect(hexWordPattern('a5')).toBe('%_135%');
  expect(hexWordPattern('п')).toBe('%d0_f%');
});
