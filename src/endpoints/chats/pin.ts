/** Pins and unpins messages as a person (behaviour §5, §11). */
import { z } from 'zod';
import { chatOfUser, userSender } from '../../actions/compose.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { appChatId } from '../../wire/fields.js';
import { done } from '../../wire/results.js';
import { boolean, messageId, optional } from '../../wire/schema.js';

const path = '/api/chats/{chat_id}/pin';

export const pinMessage = defineEndpoint({
  verb: 'POST',
  path,
  inRedis: true,
  summary: 'Pins a message. Replaces the pinned one.',
  params: z.object({
    chat_id: appChatId,
    message_id: messageId,
    disable_notification: optional(boolean),
  }),
  errors: [
    'chat_not_found',
    'not_chat_member',
    'bot_blocked_by_you',
    'cant_write_to_bot',
    'bot_not_found',
    'pin_not_allowed',
    'message_to_pin_not_found',
    'service_cant_be_pinned',
  ],
  result: done,
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    await store.pins.pin(chat, userSender(user), p.message_id, p.disable_notification !== true);
    return true;
  },
});

export const unpinMessage = defineEndpoint({
  verb: 'DELETE',
  path,
  inRedis: true,
  summary: 'Unpins a message, or the pinned one without `message_id`.',
  params: z.object({ chat_id: appChatId, message_id: optional(messageId) }),
  errors: ['chat_not_found', 'not_chat_member', 'pin_not_allowed', 'message_to_unpin_not_found'],
  result: done,
  handler: async ({ user, store }, p) => {
    await store.pins.unpin(chatOfUser(user.id, p.chat_id), userSender(user), p.message_id ?? null);
    return true;
  },
});
