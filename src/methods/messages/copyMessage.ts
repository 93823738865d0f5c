import { z } from 'zod';
import { botSender, captionContent, chatOfBot, keyboard, keyboardErrors } from '../../actions/compose.js';
import { forwardingErrors, type Overrides, readSources, resend } from '../../actions/forwarding.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { messageReference } from '../../wire/results.js';
import {
  boolean,
  chatId,
  entities,
  messageId,
  optional,
  parseMode,
  replyMarkup,
  replyParameters,
  text,
} from '../../wire/schema.js';

/**
 * Sends a copy of a message as the bot's own (interface §4.3, behaviour §6). A given caption replaces that of media,
 * and an empty one removes it; texts have no caption. A given keyboard replaces the original one.
 */
export const copyMessage = defineMethod({
  name: 'copyMessage',
  effect: 'grow',
  summary: 'Copies a message without its source.',
  params: z.object({
    chat_id: chatId,
    from_chat_id: chatId,
    message_id: messageId,
    caption: text.nullish(),
    parse_mode: parseMode,
    caption_entities: entities,
    reply_markup: replyMarkup,
    reply_parameters: replyParameters,
    reply_to_message_id: optional(messageId),
    allow_sending_without_reply: optional(boolean),
    disable_notification: optional(boolean),
    protect_content: optional(boolean),
  }),
  errors: [
    ...forwardingErrors,
    'message_to_copy_not_found',
    'copy_protected',
    'caption_too_long',
    'parse_mode_unsupported',
    'entities_unparsable',
    'entities_too_long',
    ...keyboardErrors,
    'reply_not_found',
  ],
  result: messageReference,
  handler: async ({ bot, store }, p) => {
    const caption = p.caption ?? undefined;
    const chat = chatOfBot(bot.id, p.chat_id);
    const words =
      caption === undefined
        ? null
        : await captionContent(store, { id: bot.id, isBot: true, chat }, { ...p, caption });
    const markup = p.reply_markup === undefined ? undefined : keyboard(p.reply_markup);
    // Uses a batch of one. A single send would keep a copy of the message in Redis for a day under the idempotency key,
    // but only the id is returned.
    const { ids } = await store.messages.sendMany(chat, botSender(bot), async () => {
      const [found] = await readSources({ bot, store }, 'copy', p.from_chat_id, [p.message_id]);
      const source = found ?? fail('message_to_copy_not_found');
      const { media } = source.record.content;
      const overrides: Overrides = {
        ...(words === null || media === undefined ? {} : { content: { ...words, media } }),
        ...(markup === undefined ? {} : { markup }),
        replyTo: p.reply_parameters?.message_id ?? p.reply_to_message_id ?? 0,
        allowMissingReply:
          p.reply_parameters?.allow_sending_without_reply ?? p.allow_sending_without_reply ?? false,
      };
      return [resend(bot, 'copy', source, p, overrides)];
    });
    return { message_id: ids[0] as number };
  },
});
