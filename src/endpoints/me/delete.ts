import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { confirm } from '../../wire/fields.js';
import { done } from '../../wire/results.js';

/** Deletes the caller's account (behaviour §14). */
export const deleteSelf = defineEndpoint({
  verb: 'DELETE',
  path: '/api/me',
  summary:
    'Deletes the caller’s account permanently, with bots, direct chats, messages and reactions. Their tokens stop working before this call returns.',
  params: z.object({ confirm }),
  result: done,
  handler: async ({ user, store }) => {
    await store.accounts.end(user.id);
    return true;
  },
});
