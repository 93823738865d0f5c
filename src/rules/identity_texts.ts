/** Validates and selects a bot's name and descriptions, which can differ by language (interface §2). */
import { isBlank } from './text.js';

export const languages = ['ru', 'en', 'uz', 'tg', 'hy', 'tt', 'kk'] as const;
export type Language = (typeof languages)[number];

/** The texts by language. The key `''` is the default text. A language without its own text has no key. */
export type Texts = Readonly<Record<string, string>>;

export function isTextKey(key: string): boolean {
  return key === '' || (languages as readonly string[]).includes(key);
}

/**
 * Prepares a text for storage: converts line breaks to LF and removes outer white space. A text with only invisible
 * characters becomes empty, and empty texts are not stored.
 */
export function cleanText(given: string): string {
  const text = given.replaceAll('\r', '').trim();
  return isBlank(text) ? '' : text;
}

export function textIn(texts: Texts, language: string | null | undefined, fallback: string): string {
  return (language && Object.hasOwn(texts, language) ? texts[language] : texts['']) ?? fallback;
}
