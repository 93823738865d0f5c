import { z } from 'zod';
import { defineEndpoint } from '../../api/endpoint.js';
import { confirm } from '../../api/fields.js';
import { done } from '../../api/results.js';

/** Behaviour §14. */
export const deleteSelf = defineEndpoint({
  verb: 'DELETE',
  path: '/api/me',
  summary:
    'Ends the account of the caller for good, with their bots, direct chats, messages and reactions; once this has answered, no node accepts a token of theirs.',
  params: z.object({ confirm }),
  result: done,
  handler: async ({ user, store }) => {
    await store.accounts.end(user.id);
    return true;
  },
});
