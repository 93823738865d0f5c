/** Searches for words in texts, ignoring case, and builds the patterns with which Postgres preselects texts. */
import { ruleLimits as limits } from './limits.js';

/** Converts a text to lower case, the form in which texts are compared. Keeps diacritical marks. */
export const foldCase = (text: string): string => text.toLowerCase().replaceAll('ς', 'σ');

/**
 * Returns the distinct words of a query, converted by `foldCase`. Words are separated by white space. Returns null if
 * the query has no word or more than `limits.search_words_max` words.
 */
export function searchWords(query: string): readonly string[] | null {
  const words = [...new Set(foldCase(query).split(/\s+/u).filter(Boolean))];
  return words.length === 0 || words.length > limits.search_words_max ? null : words;
}

/** Returns whether each word is in at least one of the texts. Different words may be in different texts. */
export function containsWords(texts: readonly string[], words: readonly string[]): boolean {
  const folded = texts.map(foldCase);
  return words.every((word) => folded.some((text) => text.includes(word)));
}

/** Encodes a text like the Postgres function `encode(bytes, 'hex')`. */
const hex = (text: string): string => Buffer.from(text).toString('hex');

/** Encodes a text like the Postgres function `encode(bytes, 'escape')`. */
const escaped = (text: string): string =>
  [...Buffer.from(text)]
    .map((byte) => {
      if (byte === 0x5c) return '\\\\';
      return byte === 0 || byte >= 0x80
        ? `\\${byte.toString(8).padStart(3, '0')}`
        : String.fromCharCode(byte);
    })
    .join('');

const inPattern = (text: string): string => text.replace(/[\\%_]/g, '\\$&');

/** Returns the character and all characters that `foldCase` converts to it. */
function formsOf(char: string): string[] {
  const upper = char.toUpperCase();
  return [char, ...([...upper].length === 1 ? [upper] : []), ...(char === 'σ' ? ['ς'] : [])];
}

/**
 * Returns a pattern that matches the encoded form of a character in upper and lower case. Where the encoded forms
 * differ, the pattern has a wildcard.
 */
function commonPattern([first = '', ...others]: readonly string[]): string {
  if (others.some(({ length }) => length !== first.length)) return '%';
  return [...first]
    .map((each, i) => (others.every((other) => other[i] === each) ? inPattern(each) : '_'))
    .join('');
}

// Needs no wildcards for ASCII letters, because ILIKE ignores their case.
const escapedPattern = (char: string): string =>
  char < '\u0080' ? inPattern(escaped(char)) : commonPattern(formsOf(char).map(escaped));

const hexPattern = (char: string): string => commonPattern(formsOf(char).map(hex));

const anywhere = (word: string, patternOf: (char: string) => string): string =>
  `%${[...word].map(patternOf).join('')}%`;

/**
 * Returns a pattern for `encode(record, 'escape') collate "C" ilike`. The pattern matches every record with a string
 * that contains the word. The pattern also matches some other records, because a letter in another case has other
 * bytes. The word must be in the form of `foldCase`. The pattern depends on no locale of the database. It does not find
 * the few letters that have the same lower case as another letter, such as the Kelvin sign.
 */
export const wordPattern = (word: string): string => anywhere(word, escapedPattern);

/**
 * Returns a pattern for `encode(record, 'hex') collate "C" like`. The pattern matches every record with a string
 * that contains the word. If the word is short, the pattern also matches many other records.
 */
export const hexWordPattern = (word: string): string => anywhere(word, hexPattern);
