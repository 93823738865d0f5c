import { expect, test } from 'vitest';

interface Piece {
  readonly text: string;
  readonly isFound: boolean;
}
// The application needs the browser type definitions, and tests are compiled without these definitions.
const client = '../../src/web/client';
const {
  piecesOf,
  snippetOf,
  wordsOf,
}: {
  piecesOf(text: string, words: readonly string[]): Piece[];
  snippetOf(text: string, words: readonly string[]): Piece[];
  wordsOf(query: string): string[];
} = await import(`${client}/found.ts`);

/** Writes the matches in brackets. */
const shown = (pieces: readonly Piece[]) =>
  pieces.map(({ text, isFound }) => (isFound ? `[${text}]` : text)).join('');
const pieces = (text: string, query: string) => shown(piecesOf(text, wordsOf(query)));
const snippet = (text: string, query: string) => shown(snippetOf(text, wordsOf(query)));

test('every occurrence of every word is highlighted, in any case', () => {
  expect(pieces('A cat, a CAT and a dog', 'cat DOG')).toBe('A [cat], a [CAT] and a [dog]');
  expect(pieces('ПРИВЕТ, привет', 'Привет')).toBe('[ПРИВЕТ], [привет]');
  expect(pieces('ΟΔΟΣ οδος', 'οδος')).toBe('[ΟΔΟΣ] [οδος]');
  expect(pieces('abcd', 'abc bcd')).toBe('[abcd]');
  expect(pieces('nothing', 'cat')).toBe('nothing');
  expect(pieces('', 'cat')).toBe('');
});

test('if the lower-case form of a letter is longer, later highlights do not shift', () => {
  expect(pieces('İİ cat', 'cat')).toBe('İİ [cat]');
});

test('a snippet shows the first match and its surroundings on one line', () => {
  expect(snippet('first\n\nline with a cat', 'cat')).toBe('first line with a [cat]');
  const long = `${'a '.repeat(200)}cat${' b'.repeat(200)}`;
  const found = snippet(long, 'cat');
  expect(found).toMatch(/^…(a ){12}\[cat\]( b)+ ?…$/);
  expect(found.length).toBeLessThan(170);
});

test('a snippet does not cut a character in half', () => {
  for (let spaces = 0; spaces < 4; spaces++) {
    const found = snippet(`${'x'.repeat(spaces)}${'🐦'.repeat(40)}cat${'🐦'.repeat(100)}`, 'cat');
    expect(found).toContain('[cat]');
    expect(found).not.toMatch(/\p{Surrogate}/u);
  }
});
