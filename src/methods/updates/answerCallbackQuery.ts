import { z } from 'zod';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { isLongerThan } from '../../rules/text.js';
import { defineMethod } from '../../server/method.js';
import { boolean, clampedInteger, optional, text } from '../../wire/schema.js';

/**
 * Parses a URL that the person's client opens. Allows the same schemes as URL buttons and the same length as media
 * URLs.
 */
const followed = z
  .string({ error: 'a string' })
  .max(limits.media_url_length_max, {
    error: `an address of up to ${limits.media_url_length_max} characters`,
  })
  .regex(/^(https?|tg):\/\/\S+$/i, { error: 'an http, https or tg address' });

/** Answers a press of an inline button. The person sees the answer on the event stream (behaviour §9). */
export const answerCallbackQuery = defineMethod({
  name: 'answerCallbackQuery',
  effect: 'change',
  summary: 'Answers a callback query, which a person causes by pressing an inline button.',
  params: z.object({
    callback_query_id: text,
    text: optional(text).describe(
      `Text shown to the person, up to ${limits.callback_answer_length_max} characters`,
    ),
    show_alert: optional(boolean),
    url: optional(followed),
    cache_time: optional(clampedInteger(0, 86_400)),
  }),
  errors: ['query_too_old', 'callback_answer_too_long'],
  handler: async ({ bot, store }, p) => {
    if (isLongerThan(p.text ?? '', limits.callback_answer_length_max)) fail('callback_answer_too_long');
    await store.callbacks.answer(bot.id, p.callback_query_id, {
      callback_query_id: p.callback_query_id,
      ...(p.text === undefined ? {} : { text: p.text }),
      ...(p.url === undefined ? {} : { url: p.url }),
      show_alert: p.show_alert ?? false,
    });
  },
});
