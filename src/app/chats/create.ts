import { z } from 'zod';
import { defineEndpoint } from '../../api/endpoint.js';
import { chatTitle } from '../../api/fields.js';
import { listedChat } from '../../api/results.js';

export const createChat = defineEndpoint({
  verb: 'POST',
  path: '/api/chats',
  summary: 'Creates a group of which the caller is the creator.',
  params: z.object({ type: z.literal('group', { error: 'one of: group' }), title: chatTitle }),
  errors: ['title_invalid', 'too_many_chats'],
  result: listedChat,
  handler: async ({ user, store }, p) => {
    const chat = await store.chats.create(p.type, p.title, user.id);
    return { id: chat.id, type: p.type, title: p.title, member_count: 1 };
  },
});
