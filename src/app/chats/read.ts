import { z } from 'zod';
import { defineEndpoint } from '../../api/endpoint.js';
import { appChatId } from '../../api/fields.js';
import { readableChat } from '../../api/reading.js';
import { done } from '../../api/results.js';
import { messageId } from '../../api/schema.js';

/** The mark only moves on: an older message changes nothing. */
export const readChat = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/read',
  summary: 'Marks a chat as read up to a message, in all of the caller’s sessions.',
  params: z.object({ chat_id: appChatId, message_id: messageId }),
  uncounted: true,
  errors: ['chat_not_found', 'not_chat_member'],
  result: done,
  handler: async ({ user, store }, p) => {
    await store.readMarks.set(user.id, await readableChat(store, user, p.chat_id), p.message_id);
    return true;
  },
});
