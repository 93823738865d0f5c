import { z } from 'zod';
import { ownBot } from '../../actions/own_bot.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId, inlinePlaceholder } from '../../wire/fields.js';
import { ownedBotSettings } from '../../wire/owner_results.js';
import { boolean, optional } from '../../wire/schema.js';

export const setInlineMode = defineEndpoint({
  verb: 'PUT',
  path: '/api/me/bots/{bot_id}/inline_mode',
  summary: 'Turns the inline mode of a bot on or off.',
  params: z.object({
    bot_id: botId,
    enabled: boolean,
    placeholder: inlinePlaceholder
      .optional()
      .describe(
        `Text in the composer after the username of the bot, up to ${limits.inline_placeholder_length_max} characters`,
      ),
    feedback: optional(boolean).describe('Whether the bot gets the results that people choose'),
  }),
  errors: ['bot_not_found', 'not_bot_owner', 'placeholder_too_long'],
  result: ownedBotSettings,
  handler: async ({ user, store, files }, { bot_id, enabled, placeholder = '', feedback = false }) => {
    const mode = enabled ? { placeholder, feedback } : null;
    const bot = await store.bots.setInlineMode(user.id, bot_id, mode);
    return ownBot(store, files, bot, user);
  },
});
