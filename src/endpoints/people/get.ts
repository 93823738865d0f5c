import { z } from 'zod';
import { namedPerson } from '../../actions/people.js';
import { viewAvatar } from '../../actions/pictures.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { viewStranger } from '../../view/users.js';
import { usernameOrId } from '../../wire/fields.js';
import { personPage } from '../../wire/people_results.js';

export const getPerson = defineEndpoint({
  verb: 'GET',
  path: '/api/people/{person}',
  summary: 'Returns a person, and the caller’s chat with the person.',
  params: z.object({ person: usernameOrId }),
  errors: ['user_not_found'],
  result: personPage,
  handler: async ({ user, store, files }, p) => {
    const { person, chat } = await namedPerson(store, user, p.person);
    const isBlocked = await store.people.hasBlocked(user.id, person.id);
    return {
      user: viewStranger(userProfile(person)),
      ...viewAvatar(files, person),
      ...(chat === null ? {} : { chat_id: chat.id }),
      ...(isBlocked ? { blocked: true } : {}),
    };
  },
});
