import { z } from 'zod';
import { chatOfUser, writingErrors } from '../../actions/compose.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { appChatId, appMessageId } from '../../wire/fields.js';
import { pressedQuery } from '../../wire/results.js';

export const pressButton = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/messages/{message_id}/callback',
  inRedis: true,
  summary: 'Presses an inline button. The bot’s answer arrives on the event stream.',
  params: z.object({ chat_id: appChatId, message_id: appMessageId, data: z.string({ error: 'a string' }) }),
  errors: [...writingErrors, 'message_not_found', 'button_not_found'],
  result: pressedQuery,
  handler: async ({ user, store }, p) => ({
    callback_query_id: await store.callbacks.press(
      chatOfUser(user.id, p.chat_id),
      userProfile(user),
      p.message_id,
      p.data,
    ),
  }),
});
