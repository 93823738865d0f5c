import { z } from 'zod';
import { readableChat } from '../../actions/reading.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { storeLimits as limits } from '../../store/limits.js';
import { appChatId } from '../../wire/fields.js';

const path = '/api/chats/{chat_id}/list_pin';
const params = z.object({ chat_id: appChatId });

export const pinChat = defineEndpoint({
  verb: 'PUT',
  path,
  summary: `Pins a chat at the top of the caller’s chat list, and removes the chat from the archive. The most recently pinned chat comes first. A person can pin ${limits.chats_pinned_max} chats.`,
  params,
  uncounted: true,
  errors: ['chat_not_found', 'not_chat_member', 'too_many_pinned_chats'],
  handler: async ({ user, store }, { chat_id }) =>
    store.places.pin(user.id, await readableChat(store, user, chat_id)),
});

export const unpinChat = defineEndpoint({
  verb: 'DELETE',
  path,
  summary: 'Unpins a chat in the caller’s chat list.',
  params,
  uncounted: true,
  errors: ['chat_not_found', 'not_chat_member'],
  handler: async ({ user, store }, { chat_id }) =>
    store.places.unpin(user.id, await readableChat(store, user, chat_id)),
});
