/** The texts by which a bot presents itself, in the languages that they can be written in (interface §2). */
import { isBlank } from './text.js';

/** The languages of interface §2. */
export const languages = ['ru', 'en', 'uz', 'tg', 'hy', 'tt', 'kk'] as const;
export type Language = (typeof languages)[number];

/** Texts by language; `''` is the default. A language that has no text has no key. */
export type Texts = Readonly<Record<string, string>>;

/** Whether texts can be kept under this key: one of the seven codes as they are written, or `''`. */
export function isTextKey(key: string): boolean {
  return key === '' || (languages as readonly string[]).includes(key);
}

/**
 * A text as it is kept: line breaks are LF, outer white space is gone. A text in which a reader would see nothing is empty,
 * and an empty text is no text.
 */
export function cleanText(given: string): string {
  const text = given.replaceAll('\r', '').trim();
  return isBlank(text) ? '' : text;
}

/** The text for a language, else the default, else `fallback`. A language that has no texts of its own gets the default. */
export function textIn(texts: Texts, language: string | null | undefined, fallback: string): string {
  return (language && Object.hasOwn(texts, language) ? texts[language] : texts['']) ?? fallback;
}
