import { z } from 'zod';
import {
  botSender,
  chatErrors,
  chatOfBot,
  inlineKeyboardErrors,
  keyboard,
  textContent,
} from '../../actions/compose.js';
import { editsInline } from '../../actions/inline_edits.js';
import { defineMethod } from '../../server/method.js';
import { viewMessage } from '../../view/messages.js';
import { editedMessage } from '../../wire/results.js';
import {
  boolean,
  chatId,
  entities,
  linkPreviewParams,
  messageId,
  messageText,
  optional,
  parseMode,
  replyMarkup,
} from '../../wire/schema.js';

const content = {
  text: messageText,
  parse_mode: parseMode,
  entities,
  ...linkPreviewParams,
  reply_markup: replyMarkup,
  coalesce: optional(boolean).describe(
    'Accepts edits at any rate. The newest text of each second is stored. The header `X-Service-Coalesce: 1` has the same effect',
  ),
};

/**
 * Replaces the text of a message (interface §4.3). With `coalesce`, an edit that comes too early is accepted and made
 * later (behaviour §7).
 */
export const editMessageText = defineMethod({
  name: 'editMessageText',
  effect: 'grow',
  summary: 'Replaces the text and the inline keyboard of a message.',
  params: z.object({ chat_id: chatId, message_id: messageId, ...content }),
  errors: [
    ...chatErrors,
    'message_to_edit_not_found',
    'message_cant_be_edited',
    'no_text_to_edit',
    'message_not_modified',
    'text_empty',
    'text_too_long',
    'parse_mode_unsupported',
    'entities_unparsable',
    'entities_too_long',
    ...inlineKeyboardErrors,
    'inline_message_invalid',
  ],
  result: editedMessage,
  ofInline: editsInline(
    content,
    async ({ store }, p, writer) => ({
      what: 'text',
      content: await textContent(store, writer, p),
      markup: keyboard(p.reply_markup),
    }),
    (p) => p.coalesce === true,
  ),
  coalesces: true,
  handler: async ({ bot, store }, p) => {
    const editor = botSender(bot);
    const chat = chatOfBot(bot.id, p.chat_id);
    const edit = {
      what: 'text',
      content: await textContent(store, { id: bot.id, isBot: true, chat }, p),
      markup: keyboard(p.reply_markup),
    } as const;
    const { messages, time } = store;
    const edited = p.coalesce
      ? await messages.editCoalesced(chat, editor, p.message_id, edit, bot.owner)
      : await messages.edit(chat, editor, p.message_id, edit);
    const shown = viewMessage(edited, { isBot: true, bot: editor.profile }, time);
    return 'isPending' in edited ? { ...shown, edit_pending: true } : shown;
  },
});
