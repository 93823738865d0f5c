import { z } from 'zod';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { namedByUsername } from '../../wire/chat_results.js';
import { usernameOfPerson } from '../../wire/fields.js';

/** Finds a public chat, bot or person by username. Private chats have no username. */
export const findName = defineEndpoint({
  verb: 'GET',
  path: '/api/names/{username}',
  summary: 'Returns the person, bot or public chat that has this username.',
  params: z.object({ username: usernameOfPerson }),
  errors: ['username_unknown'],
  result: namedByUsername,
  handler: async ({ store }, { username }) => {
    const bot = await store.bots.findByUsername(username);
    if (bot)
      return {
        ...{ type: 'bot', id: bot.id, username: bot.username },
        ...(bot.inline === undefined ? {} : { inline_placeholder: bot.inline.placeholder }),
      };
    const ref = await store.chats.findByUsername(username);
    const chat = ref && (await store.chats.find(ref));
    if (chat?.profile.u !== undefined)
      return { type: chat.profile.t, id: chat.profile.id, username: chat.profile.u };
    const user = await store.users.findByUsername(username);
    if (user?.username) return { type: 'user', id: user.id, username: user.username };
    return fail('username_unknown');
  },
});
