import { z } from 'zod';
import { commandsKey, scopeParams } from '../../actions/command_scope.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';

/** Removes the commands of a scope and a language (behaviour §4). */
export const deleteMyCommands = defineMethod({
  name: 'deleteMyCommands',
  effect: 'configure',
  summary: 'Removes the commands of a scope and language.',
  params: z.object(scopeParams),
  errors: ['language_invalid'],
  result: done,
  handler: async ({ bot, store }, p) => {
    await store.bots.setCommands(bot.id, commandsKey(p), []);
    return true;
  },
});
