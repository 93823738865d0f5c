import { z } from 'zod';
import { viewAvatar } from '../../actions/pictures.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { viewCaller } from '../../view/users.js';
import { self } from '../../wire/account_results.js';

export const getSelf = defineEndpoint({
  verb: 'GET',
  path: '/api/me',
  summary: 'Returns the profile of the caller.',
  params: z.object({}),
  result: self,
  handler: ({ user, files }) => ({ ...viewCaller(userProfile(user), user), ...viewAvatar(files, user) }),
});
