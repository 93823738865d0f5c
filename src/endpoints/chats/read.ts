import { z } from 'zod';
import { readableChat } from '../../actions/reading.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { appChatId } from '../../wire/fields.js';
import { messageId } from '../../wire/schema.js';

/** Moves the caller's read position forward. Does nothing if the read position is already past the message. */
export const readChat = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/read',
  summary: 'Marks a chat as read up to a given message, in all sessions of the caller.',
  params: z.object({ chat_id: appChatId, message_id: messageId }),
  uncounted: true,
  errors: ['chat_not_found', 'not_chat_member'],
  handler: async ({ user, store }, p) =>
    store.readMarks.set(user.id, await readableChat(store, user, p.chat_id), p.message_id),
});
