import { z } from 'zod';
import { forwardingErrors, resendMany } from '../../actions/forwarding.js';
import { defineMethod } from '../../server/method.js';
import { messageReferences } from '../../wire/results.js';
import { boolean, chatId, messageIds, optional } from '../../wire/schema.js';

/** Copies up to 100 messages in one script, in the given order. Skips missing messages (behaviour §6). */
export const copyMessages = defineMethod({
  name: 'copyMessages',
  effect: 'grow',
  summary: 'Copies up to 100 messages in the given order.',
  params: z.object({
    chat_id: chatId,
    from_chat_id: chatId,
    message_ids: messageIds,
    disable_notification: optional(boolean),
    protect_content: optional(boolean),
    remove_caption: optional(boolean),
  }),
  errors: [
    ...forwardingErrors,
    'message_ids_empty',
    'too_many_message_ids',
    'nothing_to_forward',
    'copy_protected',
  ],
  result: messageReferences,
  handler: (context, p) => resendMany(context, 'copy', p),
});
