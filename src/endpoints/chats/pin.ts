import { z } from 'zod';
import { chatOfUser, userSender, writingErrors } from '../../actions/compose.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { appChatId } from '../../wire/fields.js';
import { boolean, messageId, optional } from '../../wire/schema.js';

const path = '/api/chats/{chat_id}/pin';

export const pinMessage = defineEndpoint({
  verb: 'POST',
  path,
  inRedis: true,
  summary: 'Pins a message, and unpins the message that was pinned before.',
  params: z.object({
    chat_id: appChatId,
    message_id: messageId,
    disable_notification: optional(boolean),
  }),
  errors: [...writingErrors, 'pin_not_allowed', 'message_to_pin_not_found', 'service_cant_be_pinned'],
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    await store.pins.pin(chat, userSender(user), p.message_id, p.disable_notification !== true);
  },
});

export const unpinMessage = defineEndpoint({
  verb: 'DELETE',
  path,
  inRedis: true,
  summary: 'Unpins a message, by default the message that is pinned now.',
  params: z.object({ chat_id: appChatId, message_id: optional(messageId) }),
  errors: ['chat_not_found', 'not_chat_member', 'pin_not_allowed', 'message_to_unpin_not_found'],
  handler: ({ user, store }, p) =>
    store.pins.unpin(chatOfUser(user.id, p.chat_id), userSender(user), p.message_id ?? null),
});
