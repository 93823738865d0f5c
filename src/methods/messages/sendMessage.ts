import { z } from 'zod';
import {
  botSender,
  chatErrors,
  chatOfBot,
  keyboardErrors,
  markupOf,
  replyAndFlags,
  sendingOf,
  textContent,
} from '../../actions/compose.js';
import { defineMethod } from '../../server/method.js';
import { viewMessage } from '../../view/messages.js';
import { message } from '../../wire/results.js';
import {
  chatId,
  entities,
  linkPreviewParams,
  messageText,
  parseMode,
  replyMarkup,
} from '../../wire/schema.js';

export const sendMessage = defineMethod({
  name: 'sendMessage',
  effect: 'grow',
  summary: 'Sends a text message.',
  params: z.object({
    chat_id: chatId,
    text: messageText,
    parse_mode: parseMode,
    entities,
    ...linkPreviewParams,
    reply_markup: replyMarkup,
    ...replyAndFlags,
  }),
  errors: [
    ...chatErrors,
    'bot_blocked',
    'posting_not_allowed',
    'sending_not_permitted',
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
      ...markupOf(p.reply_markup),
      ...sendingOf(p),
    });
    return viewMessage(sent, { isBot: true, bot: sender.profile }, store.time);
  },
});
