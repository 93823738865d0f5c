import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { confirm } from '../../wire/fields.js';

export const deleteSelf = defineEndpoint({
  verb: 'DELETE',
  path: '/api/me',
  summary:
    'Deletes the caller’s account permanently, with its bots, direct chats, messages and reactions. The tokens of the caller and of the caller’s bots stop working before this call returns.',
  params: z.object({ confirm }),
  handler: ({ user, store }) => store.accounts.end(user.id),
});
