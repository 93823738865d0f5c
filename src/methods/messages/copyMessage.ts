import { z } from 'zod';
import {
  botSender,
  captionContent,
  chatOfBot,
  keyboardErrors,
  markupOf,
  replyAndFlags,
  sendingOf,
} from '../../actions/compose.js';
import {
  forwardingErrors,
  type Overrides,
  readSources,
  resend,
  sendCopies,
} from '../../actions/forwarding.js';
import { mayCopy } from '../../actions/polls.js';
import { captionAbove } from '../../actions/send_media.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { type Media, messageKinds } from '../../store/core/codec.js';
import type { NewMessage } from '../../store/messages/messages.js';
import { messageReference } from '../../wire/results.js';
import { chatId, entities, messageId, parseMode, replyMarkup, text } from '../../wire/schema.js';

/**
 * Sends a copy of a message as the bot's own message (interface §4.3, behaviour §6). For media, `caption` replaces the
 * caption, and an empty `caption` removes it. For texts, `caption` has no effect. A given keyboard replaces the
 * original keyboard.
 */
export const copyMessage = defineMethod({
  name: 'copyMessage',
  effect: 'grow',
  summary: 'Sends a copy of a message. The copy does not show where the message came from.',
  params: z.object({
    chat_id: chatId,
    from_chat_id: chatId,
    message_id: messageId,
    caption: text.nullish(),
    parse_mode: parseMode,
    caption_entities: entities,
    show_caption_above_media: captionAbove,
    reply_markup: replyMarkup,
    ...replyAndFlags,
  }),
  errors: [
    ...forwardingErrors,
    'message_to_copy_not_found',
    'copy_protected',
    'poll_cant_be_copied',
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
    const markup = p.reply_markup === undefined ? {} : markupOf(p.reply_markup);
    // Sends a batch of one message, because the call returns only the id. A single send would also keep the whole
    // message for a day, in case the request is repeated.
    const make = async () => {
      const [found] = await readSources({ bot, store }, 'copy', p, [p.message_id]);
      const source = found ?? fail('message_to_copy_not_found');
      if (!mayCopy(source, bot.id, store.time.nowSeconds())) fail('poll_cant_be_copied');
      const { kind, content } = source.record;
      const overrides: Overrides = {
        ...sendingOf(p),
        ...(words === null || kind !== messageKinds.media
          ? {}
          : { content: { ...words, media: content.media as Media } }),
        ...markup,
      };
      return [resend({ bot, store }, 'copy', source, p, overrides)];
    };
    const send = (given: () => Promise<NewMessage[]>) => store.messages.sendMany(chat, botSender(bot), given);
    const { ids } = await sendCopies(store, bot, chat, make, send);
    return { message_id: ids[0] as number };
  },
});
