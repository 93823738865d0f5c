import { z } from 'zod';
import { commandsKey, scopeParams } from '../../actions/command_scope.js';
import { checkCommands } from '../../rules/commands.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineMethod } from '../../server/method.js';
import { json, text } from '../../wire/schema.js';

export const setMyCommands = defineMethod({
  name: 'setMyCommands',
  effect: 'configure',
  summary: `Sets the bot’s list of commands for one scope and language. A bot can have up to ${limits.command_scopes_max} such lists.`,
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
  handler: ({ bot, store }, p) => store.bots.setCommands(bot.id, commandsKey(p), checkCommands(p.commands)),
});
