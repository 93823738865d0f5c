import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { confirm } from '../../wire/fields.js';

export const deleteSelf = defineEndpoint({
  verb: 'DELETE',
  path: '/api/me',
  summary:
    'Deletes the caller’s account permanently, including its bots, direct chats, messages and reactions. All tokens of the caller and of their bots stop working before this call returns.',
  params: z.object({ confirm }),
  handler: ({ user, store }) => store.accounts.end(user.id),
});
