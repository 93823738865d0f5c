/** Validates a bot's command list and selects the commands to show a person. */
import { fail } from '../errors.js';
import { ruleLimits as limits } from './limits.js';
import { isLongerThan } from './text.js';

export interface BotCommand {
  readonly command: string;
  readonly description: string;
}

/** The scope of a command list. `@username` of a chat is already replaced by the chat's id. */
export type CommandScope =
  | { readonly type: 'default' | 'all_private_chats' | 'all_group_chats' | 'all_chat_administrators' }
  | { readonly type: 'chat' | 'chat_administrators'; readonly chat_id: number }
  | { readonly type: 'chat_member'; readonly chat_id: number; readonly user_id: number };

const shape = new RegExp(`^[a-z0-9_]{1,${limits.command_name_length_max}}$`);

/**
 * Returns the commands to store, without leading slashes and with trimmed descriptions. Errors: `too_many_commands`,
 * `command_invalid`, `command_description_invalid`.
 */
export function checkCommands(commands: readonly BotCommand[]): BotCommand[] {
  if (commands.length > limits.commands_max) fail('too_many_commands');
  return commands.map((given) => {
    const command = given.command.startsWith('/') ? given.command.slice(1) : given.command;
    const description = given.description.trim();
    if (!shape.test(command)) fail('command_invalid');
    if (description === '' || isLongerThan(description, limits.command_description_length_max)) {
      fail('command_description_invalid');
    }
    return { command, description };
  });
}

export function scopeKey(scope: CommandScope = { type: 'default' }): string {
  switch (scope.type) {
    case 'default':
    case 'all_private_chats':
    case 'all_group_chats':
    case 'all_chat_administrators':
      return scope.type;
    case 'chat':
    case 'chat_administrators':
      return `${scope.type}:${wholeNumber('chat_id', scope.chat_id)}`;
    case 'chat_member':
      return `${scope.type}:${wholeNumber('chat_id', scope.chat_id)}:${wholeNumber('user_id', scope.user_id)}`;
    default:
      return fail('parameter_wrong', { name: 'scope', what: 'a bot command scope' });
  }
}

/**
 * Returns the commands to show a person in the direct chat with a bot. Uses the narrowest scope that has commands.
 * Within this scope, prefers the commands in the person's language to the commands for all languages.
 */
export function commandsFor(
  all: Readonly<Record<string, readonly BotCommand[]>>,
  user: number,
  language: string | null,
): readonly BotCommand[] {
  for (const scope of [`chat:${user}`, 'all_private_chats', 'default']) {
    for (const end of language ? [language, ''] : ['']) {
      const found = all[`${scope}|${end}`];
      if (found && found.length > 0) return found;
    }
  }
  return [];
}

function wholeNumber(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || Math.abs(value) >= limits.id_max) {
    fail('parameter_wrong', { name: `scope.${name}`, what: 'an integer' });
  }
  return value;
}
