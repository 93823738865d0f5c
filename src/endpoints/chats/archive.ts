import { z } from 'zod';
import { readableChat } from '../../actions/reading.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { appChatId } from '../../wire/fields.js';

const path = '/api/chats/{chat_id}/archive';
const params = z.object({ chat_id: appChatId });

export const archiveChat = defineEndpoint({
  verb: 'PUT',
  path,
  summary:
    'Moves a chat to the caller’s archive and unpins it. The next message moves the chat back to the chat list, unless the chat is muted.',
  params,
  uncounted: true,
  errors: ['chat_not_found', 'not_chat_member'],
  handler: async ({ user, store }, { chat_id }) =>
    store.places.archive(user.id, await readableChat(store, user, chat_id)),
});

export const unarchiveChat = defineEndpoint({
  verb: 'DELETE',
  path,
  summary: 'Moves a chat from the caller’s archive back to the chat list.',
  params,
  uncounted: true,
  errors: ['chat_not_found', 'not_chat_member'],
  handler: async ({ user, store }, { chat_id }) =>
    store.places.unarchive(user.id, await readableChat(store, user, chat_id)),
});
