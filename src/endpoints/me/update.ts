import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { viewCaller } from '../../view/users.js';
import { addPolicies, self } from '../../wire/account_results.js';
import { answer, optional } from '../../wire/schema.js';

export const updateSelf = defineEndpoint({
  verb: 'PATCH',
  path: '/api/me',
  summary:
    'Sets the caller’s language. Also sets who may add the caller to groups, and who may start a chat with the caller. Bots see the language as `language_code`.',
  params: z.object({
    language_code: optional(
      z
        .string({ error: answer('language_invalid') })
        .regex(/^[a-z]{2}$/, { error: answer('language_invalid') }),
    ).describe('Language code of two letters (ISO 639-1). If absent, the language does not change'),
    add_to_groups: optional(
      z.enum(addPolicies, { error: 'one of: everyone, shared_chats, nobody' }),
    ).describe(
      'Who may add the caller to groups and channels: everyone, people they share a chat with, or nobody',
    ),
    start_chats: optional(z.enum(addPolicies, { error: 'one of: everyone, shared_chats, nobody' })).describe(
      'Who may start a chat with the caller: everyone, people they share a chat with, or nobody. Chats that exist stay open',
    ),
  }),
  errors: ['language_invalid', 'user_not_found'],
  result: self,
  handler: async ({ user, store }, change) => {
    const changed = Object.values(change).some((value) => value !== undefined)
      ? await store.users.change(user.id, change)
      : user;
    return viewCaller(userProfile(changed), changed);
  },
});
