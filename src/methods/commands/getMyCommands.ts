import { z } from 'zod';
import { commandsKey, scopeParams } from '../../actions/command_scope.js';
import { defineMethod } from '../../server/method.js';
import { botCommandList } from '../../wire/results.js';

export const getMyCommands = defineMethod({
  name: 'getMyCommands',
  effect: 'read',
  summary: 'Lists the bot’s commands for one scope and language.',
  params: z.object(scopeParams),
  errors: ['language_invalid'],
  result: botCommandList,
  handler: async ({ bot, store }, p) => {
    const key = commandsKey(p);
    return (await store.bots.commands(bot.id))[key] ?? [];
  },
});
