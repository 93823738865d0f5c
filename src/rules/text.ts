/** What counts as valid text, and how its length is measured (behaviour §1, §4). */
import { fail } from '../errors.js';
import { limits } from '../limits.js';

// White space, controls, format characters and the blanks that fonts draw as nothing.
const invisible = /^[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]*$/u;

/** The number of Unicode code points. A lone surrogate counts as one. */
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

/** Whether the text is longer than `max` code points, without counting when its size alone decides. */
export function isLongerThan(text: string, max: number): boolean {
  if (text.length <= max) return false;
  return text.length > 2 * max || codePointLength(text) > max;
}

/** Whether Postgres can store the text: no lone surrogate and no U+0000. */
export function isWellFormed(text: string): boolean {
  // The method is in every supported Node, but not in the ES2023 library types.
  return (text as string & { isWellFormed(): boolean }).isWellFormed() && !text.includes('\0');
}

/** The text as it is; `bad_unicode` when it holds U+0000 or half a surrogate pair. */
export function checkText(text: string): string {
  if (!isWellFormed(text)) fail('bad_unicode');
  return text;
}

/** Whether a reader would see nothing: the text is empty or has only spaces, line breaks and invisible characters. */
export function isBlank(text: string): boolean {
  return invisible.test(text);
}

/**
 * Returns a message text as it came out of `formatText`, 1 to `text_length_max` code points.
 * Errors: `text_empty` (blank text too), `text_too_long`.
 */
export function messageText(text: string): string {
  if (isLongerThan(text, limits.text_length_max)) fail('text_too_long');
  if (isBlank(text)) fail('text_empty');
  return text;
}

/**
 * Returns a caption as it came out of `formatText`, up to `caption_length_max` code points; a blank one becomes ''.
 * Error: `caption_too_long`.
 */
export function captionText(text: string): string {
  if (isLongerThan(text, limits.caption_length_max)) fail('caption_too_long');
  return isBlank(text) ? '' : text;
}
