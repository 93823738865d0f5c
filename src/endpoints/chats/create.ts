import { z } from 'zod';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { listedChat } from '../../wire/chat_results.js';
import { chatTitle, username } from '../../wire/fields.js';
import { boolean, optional } from '../../wire/schema.js';

export const createChat = defineEndpoint({
  verb: 'POST',
  path: '/api/chats',
  summary: 'Creates a group or a channel.',
  params: z.object({
    type: z.enum(['group', 'channel'], { error: 'one of: group, channel' }),
    title: chatTitle,
    username: optional(username),
    private: optional(boolean).describe(
      'True if only members see the chat and nobody can join by themselves. By default true for a group without a username',
    ),
  }),
  errors: ['title_invalid', 'username_invalid', 'username_taken', 'too_many_chats'],
  result: listedChat,
  handler: async ({ user, store }, { type, title, username, private: hidden }) => {
    // A username makes a chat public, so a private chat cannot have one.
    if (hidden && username !== undefined)
      fail('parameter_wrong', { name: 'private', what: 'false for a chat with a username' });
    const chat = await store.chats.create(type, title, user.id, { username, private: hidden });
    return { id: chat.id, type, title, ...(username === undefined ? {} : { username }), member_count: 1 };
  },
});
