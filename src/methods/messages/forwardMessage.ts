import { z } from 'zod';
import { botSender, chatOfBot } from '../../actions/compose.js';
import { forwardingErrors, readSources, resend } from '../../actions/forwarding.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { viewMessage } from '../../view/messages.js';
import { message } from '../../wire/results.js';
import { boolean, chatId, messageId, optional } from '../../wire/schema.js';

export const forwardMessage = defineMethod({
  name: 'forwardMessage',
  effect: 'grow',
  summary: 'Forwards a message. The forwarded message shows where it came from.',
  params: z.object({
    chat_id: chatId,
    from_chat_id: chatId,
    message_id: messageId,
    disable_notification: optional(boolean),
    protect_content: optional(boolean),
  }),
  errors: [...forwardingErrors, 'message_to_forward_not_found', 'forward_protected'],
  result: message,
  handler: async ({ bot, store }, p) => {
    const sender = botSender(bot);
    const sent = await store.messages.send(chatOfBot(bot.id, p.chat_id), sender, async () => {
      const [source] = await readSources({ bot, store }, 'forward', p, [p.message_id]);
      return resend({ bot, store }, 'forward', source ?? fail('message_to_forward_not_found'), p);
    });
    return viewMessage(sent, { isBot: true, bot: sender.profile }, store.time);
  },
});
