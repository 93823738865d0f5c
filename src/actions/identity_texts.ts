/** Parameters for a bot's name and descriptions (interface §2, §8, behaviour §2). */
import { z } from 'zod';
import type { ErrorName } from '../errors.js';
import { limits } from '../limits.js';
import { cleanText, isTextKey, languages } from '../rules/identity_texts.js';
import { isLongerThan } from '../rules/text.js';
import { answer, json, optional } from '../wire/schema.js';

/** One of the seven language codes; the default when absent or empty. Error: `language_invalid`. */
export const languageCode = optional(z.enum(languages, { error: answer('language_invalid') }));

/** Up to `max` code points of the stored text. An empty text removes the value. */
const identityText = (max: number, tooLong: ErrorName) =>
  z
    .string({ error: 'a string' })
    .transform(cleanText)
    .refine((text) => !isLongerThan(text, max), { error: answer(tooLong) });

/** Error: `name_too_long`. */
export const nameText = identityText(limits.bot_name_length_max, 'name_too_long');
/** Error: `description_too_long`. */
export const descriptionText = identityText(limits.bot_description_length_max, 'description_too_long');
/** Error: `short_description_too_long`. */
export const shortDescriptionText = identityText(
  limits.bot_short_description_length_max,
  'short_description_too_long',
);

/** Texts by language code, `""` for the default. Errors: `language_invalid`, and those of the text. */
export const byLanguage = (text: typeof nameText) =>
  optional(
    json(
      z
        .record(z.string(), text, { error: 'an object of texts by language code' })
        .refine((texts) => Object.keys(texts).every(isTextKey), { error: answer('language_invalid') }),
    ),
  );
