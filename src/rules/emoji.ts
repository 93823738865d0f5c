/** Validates reactions. A reaction is exactly one emoji that Unicode recommends for interchange (behaviour §8). */
import { fail } from '../errors.js';

// RegExp properties of strings need the flag v, which is not allowed in a literal at this code's language level.
// biome-ignore lint/complexity/useRegexLiterals: the flag v is newer than the language level of this code
const oneEmoji = new RegExp('^\\p{RGI_Emoji}$', 'v');
/**
 * Matches characters that are shown as text unless U+FE0F follows them. A fully qualified emoji therefore has U+FE0F
 * after such a character.
 */
const textByDefault = /^\p{Emoji}$/u;
const emojiByDefault = /^\p{Emoji_Presentation}$/u;
const skinTone = /^\p{Emoji_Modifier}$/u;

const selector = '\ufe0f';
/** The maximum length of an emoji in UTF-16 code units, including its variation selectors. */
const codeUnitsMax = 64;

/** Converts an emoji to its fully qualified form by inserting U+FE0F where required. */
function qualified(bare: string): string {
  const points = Array.from(bare);
  return points
    .map((point, i) => {
      const needsSelector =
        textByDefault.test(point) && !emojiByDefault.test(point) && !skinTone.test(points[i + 1] ?? '');
      return needsSelector ? point + selector : point;
    })
    .join('');
}

/** A cache of valid emoji, without U+FE0F. The cache cannot have more entries than Unicode has emoji. */
const recommended = new Set<string>();

/** Returns an emoji in its stored form, without U+FE0F. Returns null if the text is not exactly one emoji. */
export function emojiIn(given: string): string | null {
  if (recommended.has(given)) return given;
  if (given.length > codeUnitsMax) return null;
  const bare = given.replaceAll(selector, '');
  if (!oneEmoji.test(qualified(bare))) return null;
  recommended.add(bare);
  return bare;
}

/** Returns the stored form of a reaction's emoji. Error: `reaction_invalid`. */
export const reactionEmoji = (given: string): string => emojiIn(given) ?? fail('reaction_invalid');

export const heart = '\u2764';
