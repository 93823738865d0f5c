/** What people change of themselves (behaviour §11). */
import { z } from 'zod';
import { defineEndpoint } from '../../api/endpoint.js';
import { user } from '../../api/results.js';
import { answer, optional } from '../../api/schema.js';
import { userProfile } from '../../store/chats/chats.js';
import { viewSelf } from '../../view/users.js';

export const updateSelf = defineEndpoint({
  verb: 'PATCH',
  path: '/api/me',
  summary: 'Sets the language of the caller, which bots are told as `language_code`.',
  params: z.object({
    language_code: optional(
      z
        .string({ error: answer('language_invalid') })
        .regex(/^[a-z]{2}$/, { error: answer('language_invalid') }),
    ).describe('Two letters (ISO 639-1); it stays as it is when absent'),
  }),
  errors: ['language_invalid', 'user_not_found'],
  result: user,
  handler: async ({ user, store }, { language_code }) => {
    if (language_code === undefined) return viewSelf(userProfile(user));
    return viewSelf(userProfile(await store.users.setLanguage(user.id, language_code)));
  },
});
