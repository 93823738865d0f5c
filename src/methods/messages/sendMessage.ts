import { z } from 'zod';
import {
  botSender,
  chatErrors,
  chatOfBot,
  keyboard,
  keyboardErrors,
  textContent,
} from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { messageFlags } from '../../store/core/codec.js';
import { viewMessage } from '../../view/messages.js';
import { message } from '../../wire/results.js';
import {
  boolean,
  chatId,
  entities,
  messageId,
  messageText,
  optional,
  parseMode,
  replyMarkup,
  replyParameters,
} from '../../wire/schema.js';

/** Sends a text message (behaviour §4). */
export const sendMessage = defineMethod({
  name: 'sendMessage',
  effect: 'grow',
  summary: 'Sends a text message.',
  params: z.object({
    chat_id: chatId,
    text: messageText,
    parse_mode: parseMode,
    entities,
    reply_markup: replyMarkup,
    reply_parameters: replyParameters,
    reply_to_message_id: optional(messageId),
    allow_sending_without_reply: optional(boolean),
    disable_notification: optional(boolean),
    protect_content: optional(boolean),
  }),
  errors: [
    ...chatErrors,
    'bot_blocked',
    'posting_not_allowed',
    'text_empty',
    'text_too_long',
    'parse_mode_unsupported',
    'entities_unparsable',
    'entities_too_long',
    ...keyboardErrors,
    'reply_not_found',
  ],
  result: message,
  handler: async ({ bot, store }, p) => {
    const sender = botSender(bot);
    const chat = chatOfBot(bot.id, p.chat_id);
    const made = textContent(store, { id: bot.id, isBot: true, chat }, p);
    const sent = await store.messages.send(chat, sender, {
      content: made instanceof Promise ? await made : made,
      markup: keyboard(p.reply_markup),
      flags:
        (p.protect_content ? messageFlags.protected : 0) | (p.disable_notification ? messageFlags.silent : 0),
      replyTo: p.reply_parameters?.message_id ?? p.reply_to_message_id ?? 0,
      allowMissingReply:
        p.reply_parameters?.allow_sending_without_reply ?? p.allow_sending_without_reply ?? false,
    });
    return viewMessage(sent, { isBot: true, bot: sender.profile });
  },
});
