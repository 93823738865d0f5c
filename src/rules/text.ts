/** Validates texts and measures their length (behaviour §1, §4). */
import { fail } from '../errors.js';
import { ruleLimits as limits } from './limits.js';

// Matches invisible texts. They consist only of white space, control and format characters, and characters that fonts
// draw blank.
const invisible = /^[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]*$/u;

/** Counts code points. A lone surrogate counts as one code point. */
export function codePointLength(text: string): number {
  let count = text.length;
  for (let i = 0; i + 1 < text.length; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      count--;
      i++;
    }
  }
  return count;
}

/**
 * Returns whether the text is longer than `max` code points. Counts the code points only if the number of UTF-16 code
 * units leaves the answer open.
 */
export function isLongerThan(text: string, max: number): boolean {
  if (text.length <= max) return false;
  return text.length > 2 * max || codePointLength(text) > max;
}

/** Returns whether Postgres can store the text: no lone surrogate and no U+0000. */
export function isWellFormed(text: string): boolean {
  // Casts the type, because every supported Node version has this method but the types of ES2023 lack it.
  return (text as string & { isWellFormed(): boolean }).isWellFormed() && !text.includes('\0');
}

/** Returns the text. Error: `bad_unicode` if it contains U+0000 or half a surrogate pair. */
export function checkText(text: string): string {
  if (!isWellFormed(text)) fail('bad_unicode');
  return text;
}

export function isBlank(text: string): boolean {
  return invisible.test(text);
}

/**
 * Checks a message text from `formatText`: 1 to `text_length_max` code points. Errors: `text_empty` (also for invisible
 * text), `text_too_long`.
 */
export function messageText(text: string): string {
  if (isLongerThan(text, limits.text_length_max)) fail('text_too_long');
  if (isBlank(text)) fail('text_empty');
  return text;
}

/**
 * Checks a caption from `formatText`: up to `caption_length_max` code points. Invisible text becomes ''. Error:
 * `caption_too_long`.
 */
export function captionText(text: string): string {
  if (isLongerThan(text, limits.caption_length_max)) fail('caption_too_long');
  return isBlank(text) ? '' : text;
}
