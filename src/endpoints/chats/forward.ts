import { z } from 'zod';
import { chatOfUser, writingErrors } from '../../actions/compose.js';
import { forwardAs } from '../../actions/forwarding.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { appChatId } from '../../wire/fields.js';
import { messageReferences } from '../../wire/results.js';
import { messageIds } from '../../wire/schema.js';

export const forwardMessages = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/forward',
  inRedis: true,
  summary: 'Forwards up to 100 messages from another of the caller’s chats, in the given order.',
  params: z.object({
    chat_id: appChatId,
    from_chat_id: appChatId.describe('Id of the source chat'),
    message_ids: messageIds,
  }),
  errors: [
    ...writingErrors,
    'posting_not_allowed',
    'sending_not_permitted',
    'message_ids_empty',
    'too_many_message_ids',
    'nothing_to_forward',
    'forward_protected',
    'poll_public_in_channel',
  ],
  result: messageReferences,
  handler: (context, p) =>
    forwardAs(
      context,
      chatOfUser(context.user.id, p.chat_id),
      chatOfUser(context.user.id, p.from_chat_id),
      p.message_ids,
    ),
});
