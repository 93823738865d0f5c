import { z } from 'zod';
import { commandsKey, scopeParams } from '../../actions/command_scope.js';
import { defineMethod } from '../../server/method.js';

export const deleteMyCommands = defineMethod({
  name: 'deleteMyCommands',
  effect: 'configure',
  summary: 'Removes the bot’s commands for one scope and language.',
  params: z.object(scopeParams),
  errors: ['language_invalid'],
  handler: ({ bot, store }, p) => store.bots.setCommands(bot.id, commandsKey(p), []),
});
