import { z } from 'zod';
import { defineEndpoint } from '../../api/endpoint.js';
import { user } from '../../api/results.js';
import { userProfile } from '../../store/chats/chats.js';
import { viewSelf } from '../../view/users.js';

export const getSelf = defineEndpoint({
  verb: 'GET',
  path: '/api/me',
  summary: 'Who the caller is.',
  params: z.object({}),
  result: user,
  handler: ({ user }) => viewSelf(userProfile(user)),
});
