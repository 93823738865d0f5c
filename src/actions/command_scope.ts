/** Parses the scope and language parameters of the bot command methods. */
import { z } from 'zod';
import { fail } from '../errors.js';
import { type CommandScope, scopeKey } from '../rules/commands.js';
import { answer, integer, json, optional } from '../wire/schema.js';

const ids = { chat_id: integer().optional(), user_id: integer().optional() };

export const scopeParams = {
  scope: optional(
    json(
      z.object(
        {
          type: z.enum(
            [
              'default',
              'all_private_chats',
              'all_group_chats',
              'all_chat_administrators',
              'chat',
              'chat_administrators',
              'chat_member',
            ],
            { error: 'a scope type' },
          ),
          ...ids,
        },
        { error: 'an object with a scope type' },
      ),
    ),
  ),
  language_code: optional(z.string().regex(/^[a-z]{2}$/, { error: answer('language_invalid') })),
};

interface Scoped {
  readonly scope?:
    | { readonly type: string; readonly chat_id?: number | undefined; readonly user_id?: number | undefined }
    | undefined;
  readonly language_code?: string | undefined;
}

/** Returns the storage key for commands of this scope and language. Errors: `chat_id_empty`, `parameter_required`. */
export function commandsKey({ scope, language_code }: Scoped): string {
  if (scope?.type.startsWith('chat')) {
    if (scope.chat_id === undefined) fail('chat_id_empty');
    if (scope.type === 'chat_member' && scope.user_id === undefined)
      fail('parameter_required', { name: 'user_id' });
  }
  return `${scopeKey(scope as CommandScope | undefined)}|${language_code ?? ''}`;
}
