import { z } from 'zod';
import { viewAvatar } from '../../actions/pictures.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { viewCaller } from '../../view/users.js';
import { addPolicies, self } from '../../wire/account_results.js';
import { lastName, personName } from '../../wire/fields.js';
import { answer, optional } from '../../wire/schema.js';

export const updateSelf = defineEndpoint({
  verb: 'PATCH',
  path: '/api/me',
  summary:
    'Changes the caller’s name, language and privacy settings: who may add the caller to groups, and who may start a chat with the caller. Bots see the language as `language_code`. A setting whose parameter is absent does not change.',
  params: z.object({
    first_name: personName.optional(),
    last_name: lastName
      .optional()
      .describe(
        `Last name, up to ${limits.person_name_length_max} characters. An empty text removes the last name`,
      ),
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
  errors: ['name_invalid', 'language_invalid', 'user_not_found'],
  result: self,
  handler: async ({ user, store, files }, change) => {
    if (change.first_name !== undefined || change.last_name !== undefined)
      await store.profiles.takeChange(user.id);
    const changed = Object.values(change).some((value) => value !== undefined)
      ? await store.profiles.change(user.id, change)
      : user;
    return { ...viewCaller(userProfile(changed), changed), ...viewAvatar(files, changed) };
  },
});
