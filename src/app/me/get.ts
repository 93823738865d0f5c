import { z } from 'zod';
import { self } from '../../api/account_results.js';
import { defineEndpoint } from '../../api/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { viewSelf } from '../../view/users.js';

export const getSelf = defineEndpoint({
  verb: 'GET',
  path: '/api/me',
  summary: 'Returns the caller.',
  params: z.object({}),
  result: self,
  handler: ({ user }) => ({ ...viewSelf(userProfile(user)), add_to_groups: user.addToGroups }),
});
