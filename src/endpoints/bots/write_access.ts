import { z } from 'zod';
import { ownBot } from '../../actions/own_bot.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId, usernameOfPerson } from '../../wire/fields.js';
import { ownedBotSettings } from '../../wire/owner_results.js';
import { json, optional } from '../../wire/schema.js';

const policyError = 'all, selected or owner';
const listError = `a list of up to ${limits.writers_per_bot_max} usernames`;
const usernames = json(
  z.array(usernameOfPerson, { error: listError }).max(limits.writers_per_bot_max, { error: listError }),
  // `valuesMax` counts the list itself as a value too.
  { valuesMax: limits.writers_per_bot_max + 1 },
);

/** Shows and sets who may write to a bot (interface §5.8). */
export const setWriteAccess = defineEndpoint({
  verb: 'PUT',
  path: '/api/me/bots/{bot_id}/write_access',
  summary:
    'Sets who may write to a bot in direct chats: everybody, selected people, or only the bot’s owner. The change takes effect before this call returns.',
  params: z.object({
    bot_id: botId,
    policy: z
      .enum(['all', 'selected', 'owner'], { error: policyError })
      .describe('Who may write besides the owner'),
    usernames: optional(usernames).describe(
      'Usernames of the people who may write, for the policy `selected`',
    ),
  }),
  errors: ['bot_not_found', 'not_bot_owner', 'username_unknown', 'username_not_person'],
  result: ownedBotSettings,
  handler: async ({ user, store, files }, p) => {
    if (p.policy === 'selected' && p.usernames === undefined)
      fail('parameter_required', { name: 'usernames' });
    const bot = await store.bots.setWriteAccess(user.id, p.bot_id, p.policy, p.usernames ?? []);
    return ownBot(store, files, bot, user);
  },
});
