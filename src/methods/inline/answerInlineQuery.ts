import { z } from 'zod';
import { buildInlineResults, inlineResultErrors, inlineResults } from '../../actions/inline_results.js';
import { startPayload } from '../../actions/start.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { isBlank, isLongerThan } from '../../rules/text.js';
import { defineMethod } from '../../server/method.js';
import { boolean, clampedInteger, json, optional, text } from '../../wire/schema.js';

const button = optional(
  json(
    z.looseObject(
      { text: text, start_parameter: optional(startPayload) },
      { error: 'an object with text and start_parameter' },
    ),
  ),
).describe('Button above the results that starts the bot with `start_parameter`');

/** Returns the button above the results. Throws `inline_button_invalid`. */
function buttonOf(given: z.output<typeof button>) {
  if (given === undefined) return {};
  const { text: label, start_parameter } = given;
  const invalid = (reason: string) => fail('inline_button_invalid', { reason });
  if (isBlank(label) || isLongerThan(label, limits.inline_text_length_max))
    return invalid(`text must have 1 to ${limits.inline_text_length_max} characters`);
  if (start_parameter === undefined) return invalid('start_parameter is required');
  return { button: { text: label, start_parameter } };
}

/** Answers an inline query. The person who typed the query sees the results (decision 0054). */
export const answerInlineQuery = defineMethod({
  name: 'answerInlineQuery',
  effect: 'change',
  summary: 'Answers an inline query with results, of which the person may send one.',
  params: z.object({
    inline_query_id: text,
    results: inlineResults,
    cache_time: optional(clampedInteger(0, limits.inline_cache_s_max)).describe(
      `How long the answer may be used for the same query, in seconds; default ${limits.inline_cache_s_default}`,
    ),
    is_personal: optional(boolean).describe('Whether the answer may be used for this person only'),
    next_offset: optional(text).describe(
      `Offset of the query for further results, up to ${limits.inline_offset_bytes_max} bytes`,
    ),
    button,
  }),
  errors: ['query_too_old', ...inlineResultErrors, 'inline_offset_invalid', 'inline_button_invalid'],
  handler: async (context, p) => {
    const { bot, store } = context;
    const { next_offset } = p;
    if (next_offset !== undefined && Buffer.byteLength(next_offset) > limits.inline_offset_bytes_max)
      fail('inline_offset_invalid');
    const above = buttonOf(p.button);
    const { shown, messages } = await buildInlineResults(context, p.results);
    await store.inline.answer(bot.id, p.inline_query_id, {
      list: { results: shown, ...above, ...(next_offset === undefined ? {} : { next_offset }) },
      messages,
      cacheSeconds: p.cache_time ?? limits.inline_cache_s_default,
      personal: p.is_personal ?? false,
    });
  },
});
