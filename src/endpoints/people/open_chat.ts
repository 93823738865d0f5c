import { z } from 'zod';
import { chatSummary } from '../../actions/chat_summary.js';
import { namedPerson } from '../../actions/people.js';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { listedChat } from '../../wire/chat_results.js';
import { usernameOrId } from '../../wire/fields.js';

export const openPersonChat = defineEndpoint({
  verb: 'POST',
  path: '/api/people/{person}/chat',
  summary:
    'Opens the caller’s chat with a person, or returns it if it is already open. The chat appears in chat lists after its first message.',
  params: z.object({ person: usernameOrId }),
  errors: ['user_not_found', 'person_blocked_by_you', 'cant_write_to_person', 'too_many_chats'],
  result: listedChat,
  handler: async (context, p) => {
    const { user, store } = context;
    const { person, isStranger } = await namedPerson(store, user, p.person);
    const chat = await store.people.open(user.id, person.id, isStranger);
    const [marks, muted, places] = await Promise.all([
      store.readMarks.of(user.id, [chat.id]),
      store.mutes.of(user.id, [chat.id]),
      store.places.of(user.id, [chat.id]),
    ]);
    return (await chatSummary(context, chat, user, { marks, muted, places })) ?? fail('user_not_found');
  },
});
