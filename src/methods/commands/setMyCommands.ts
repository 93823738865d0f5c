import { z } from 'zod';
import { commandsKey, scopeParams } from '../../actions/command_scope.js';
import { limits } from '../../limits.js';
import { checkCommands } from '../../rules/commands.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { json, text } from '../../wire/schema.js';

/** Sets the commands shown to users of a scope and language (behaviour §4). */
export const setMyCommands = defineMethod({
  name: 'setMyCommands',
  effect: 'configure',
  summary: `Sets the commands of a scope and language. A bot has at most ${limits.command_scopes_max} such lists.`,
  params: z.object({
    commands: json(
      z.array(z.object({ command: text, description: text }), { error: 'an array of commands' }),
    ),
    ...scopeParams,
  }),
  errors: [
    'command_invalid',
    'command_description_invalid',
    'too_many_commands',
    'too_many_command_scopes',
    'commands_too_long',
    'language_invalid',
  ],
  result: done,
  handler: async ({ bot, store }, p) => {
    await store.bots.setCommands(bot.id, commandsKey(p), checkCommands(p.commands));
    return true;
  },
});
