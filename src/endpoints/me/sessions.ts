/** Lists and ends a person's sessions (decision 0082). */
import { z } from 'zod';
import { bearerToken } from '../../rules/token.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { viewSession } from '../../view/users.js';
import { integer } from '../../wire/schema.js';
import { endedSessions, sessionPage } from '../../wire/sign_in_results.js';

const path = '/api/me/sessions';

export const listSessions = defineEndpoint({
  verb: 'GET',
  path,
  summary:
    'Lists the browsers in which the caller is signed in, newest sign-in first. The list contains no tokens.',
  params: z.object({}),
  result: sessionPage,
  handler: async ({ user, store, request }) => ({
    items: (await store.sessions.list(user.id, bearerToken(request.authorization))).map(viewSession),
  }),
});

export const endSession = defineEndpoint({
  verb: 'DELETE',
  path: `${path}/{session_id}`,
  summary: 'Ends a session of the caller. The session stops working before this call returns.',
  params: z.object({ session_id: integer().describe('Id of the session') }),
  errors: ['session_not_found'],
  handler: ({ user, store }, { session_id }) => store.sessions.end(user.id, session_id),
});

export const endOtherSessions = defineEndpoint({
  verb: 'DELETE',
  path,
  summary:
    'Ends all sessions of the caller except the one that makes this call. The ended sessions stop working before this call returns. Tokens that are not sessions stay valid.',
  params: z.object({}),
  result: endedSessions,
  handler: async ({ user, store, request }) => ({
    ended: await store.sessions.endOthers(user.id, bearerToken(request.authorization)),
  }),
});

export const endOwnSession = defineEndpoint({
  verb: 'DELETE',
  path: '/api/me/session',
  summary:
    'Ends the session that makes this call. Does nothing if the call is made with a token that is not a session.',
  params: z.object({}),
  handler: ({ user, store, request }) => store.sessions.endOwn(user.id, bearerToken(request.authorization)),
});
