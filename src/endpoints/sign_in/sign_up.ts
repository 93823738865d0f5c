import { z } from 'zod';
import { ApiError, fail } from '../../errors.js';
import { agentFamily } from '../../rules/user_agents.js';
import { defineOpenEndpoint } from '../../server/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { viewCaller } from '../../view/users.js';
import { languageCode, personName, username } from '../../wire/fields.js';
import { optional } from '../../wire/schema.js';
import { newSession } from '../../wire/sign_in_results.js';

/** Creates an account for anyone, if the setting SIGN_UP allows it (decision 0082). */
export const signUp = defineOpenEndpoint({
  verb: 'POST',
  path: '/api/sign_up',
  summary: 'Creates an account and a session. The setting SIGN_UP must be `open`.',
  params: z.object({ first_name: personName, username, language_code: optional(languageCode) }),
  errors: ['sign_up_closed', 'name_invalid', 'username_invalid', 'username_taken', 'language_invalid'],
  result: newSession,
  handler: async ({ store, request, address, signIn }, given) => {
    if (!signIn.isOpen) return fail('sign_up_closed');
    const takeBack = await store.fairUse?.signUp(address);
    const created = store.users.create(given, { agent: agentFamily(request.userAgent) });
    const { user, token } = await created.catch(async (error: unknown) => {
      // If the username was taken, the attempt does not count, because no account was created. After any other error,
      // the account may exist, so the attempt counts.
      if (error instanceof ApiError && error.kind === 'username_taken') await takeBack?.();
      throw error;
    });
    return { user: viewCaller(userProfile(user), user), token };
  },
});
