import { z } from 'zod';
import { commandsKey, scopeParams } from '../../api/command_scope.js';
import { defineMethod } from '../../api/method.js';
import { done } from '../../api/results.js';

/** Removes the commands of a scope and a language (behaviour §4). */
export const deleteMyCommands = defineMethod({
  name: 'deleteMyCommands',
  summary: 'Removes the commands of a scope and language.',
  params: z.object(scopeParams),
  errors: ['language_invalid'],
  result: done,
  handler: async ({ bot, store }, p) => {
    await store.bots.setCommands(bot.id, commandsKey(p), []);
    return true;
  },
});
