/** What may be a reaction: exactly one emoji that Unicode recommends for interchange (behaviour §8). */
import { fail } from '../errors.js';

// Properties of strings need the flag v, which the language level of this code does not spell.
// biome-ignore lint/complexity/useRegexLiterals: the flag v is newer than the language level of this code
const oneEmoji = new RegExp('^\\p{RGI_Emoji}$', 'v');
/** Shown as text unless U+FE0F follows: the fully qualified form needs it. */
const textByDefault = /^\p{Emoji}$/u;
const emojiByDefault = /^\p{Emoji_Presentation}$/u;
const skinTone = /^\p{Emoji_Modifier}$/u;

const selector = '\ufe0f';
/** Of the longest sequences, with room for selectors. */
const codeUnitsMax = 64;

/** Puts U+FE0F wherever the fully qualified form of a sequence has it. */
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

/** Emoji in their bare form that were looked at: no more than Unicode has. */
const recommended = new Set<string>();

/** The one form in which an emoji is stored, compared and shown: without U+FE0F. Error: `reaction_invalid`. */
export function reactionEmoji(given: string): string {
  if (recommended.has(given)) return given;
  if (given.length > codeUnitsMax) return fail('reaction_invalid');
  const bare = given.replaceAll(selector, '');
  if (!oneEmoji.test(qualified(bare))) return fail('reaction_invalid');
  recommended.add(bare);
  return bare;
}

/** The heart that the like endpoints stand for (interface §4.1). */
export const heart = '\u2764';
