import { z } from 'zod';
import { readableChat } from '../../actions/reading.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { appChatId } from '../../wire/fields.js';
import { integer, optional } from '../../wire/schema.js';

const path = '/api/chats/{chat_id}/mute';
/** The latest Unix time that is stored as the end of a mute. With any later time, the mute never ends. */
const until_max = 253_402_300_799;

export const muteChat = defineEndpoint({
  verb: 'PUT',
  path,
  summary: 'Turns off the caller’s notifications for a chat until a given time, or forever.',
  params: z.object({
    chat_id: appChatId,
    until: optional(integer()).describe('Unix time in seconds; forever if absent'),
  }),
  uncounted: true,
  errors: ['chat_not_found', 'not_chat_member'],
  handler: async ({ user, store }, { chat_id, until }) => {
    const chat = await readableChat(store, user, chat_id);
    await store.mutes.set(
      user.id,
      chat,
      until === undefined ? null : Math.min(Math.max(until, 0), until_max),
    );
  },
});

export const unmuteChat = defineEndpoint({
  verb: 'DELETE',
  path,
  summary: 'Turns the caller’s notifications for a chat on again.',
  params: z.object({ chat_id: appChatId }),
  uncounted: true,
  errors: ['chat_not_found', 'not_chat_member'],
  handler: async ({ user, store }, { chat_id }) =>
    store.mutes.clear(user.id, await readableChat(store, user, chat_id)),
});
