import { defineMethod, type Method, Prepared } from '../../server/method.js';
import { botIdentity } from '../../wire/results.js';

/** Returns the bot's identity from memory, without a call to Redis (interface §2, behaviour §2). */
export const getMe: Method = defineMethod({
  name: 'getMe',
  effect: 'read',
  summary: 'Returns the bot’s identity.',
  params: null,
  result: botIdentity,
  handler: ({ bot }) => {
    if (bot.prepared instanceof Prepared) return bot.prepared;
    const answer = new Prepared({
      id: bot.id,
      is_bot: true,
      first_name: bot.name,
      username: bot.username,
      can_join_groups: true,
      can_read_all_group_messages: true,
      supports_inline_queries: bot.inline !== undefined,
    });
    bot.prepared = answer;
    return answer;
  },
});
