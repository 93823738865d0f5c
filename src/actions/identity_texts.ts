/** Defines the parameters for a bot's name and descriptions (interface §2, §8, behaviour §2). */
import { z } from 'zod';
import type { ErrorName } from '../errors.js';
import { cleanText, isTextKey, languages } from '../rules/identity_texts.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { isLongerThan } from '../rules/text.js';
import { answer, json, optional } from '../wire/schema.js';

/**
 * Accepts one of the seven language codes. An absent or empty code means the default language. Error:
 * `language_invalid`.
 */
export const languageCode = optional(z.enum(languages, { error: answer('language_invalid') }));

/** Returns a schema for text of up to `max` code points. An empty text removes the stored value. */
const identityText = (max: number, tooLong: ErrorName) =>
  z
    .string({ error: 'a string' })
    .transform(cleanText)
    .refine((text) => !isLongerThan(text, max), { error: answer(tooLong) });

export const nameText = identityText(limits.bot_name_length_max, 'name_too_long');
export const descriptionText = identityText(limits.bot_description_length_max, 'description_too_long');
export const shortDescriptionText = identityText(
  limits.bot_short_description_length_max,
  'short_description_too_long',
);

/**
 * Returns a schema for an object of texts by language code. The code `""` is the default language. Errors:
 * `language_invalid`, and the errors of the schema `text`.
 */
export const byLanguage = (text: typeof nameText) =>
  optional(
    json(
      z
        .record(z.string(), text, { error: 'an object of texts by language code' })
        .refine((texts) => Object.keys(texts).every(isTextKey), { error: answer('language_invalid') }),
    ),
  );
