import { z } from 'zod';
import { viewAuthors } from '../../actions/authors.js';
import { captionContent, chatOfUser, textContent, userSender } from '../../actions/compose.js';
import { personViewer, readableChat } from '../../actions/reading.js';
import { asSeenBy, viewOwn } from '../../actions/shown_messages.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { page } from '../../server/pages.js';
import { viewMessage } from '../../view/messages.js';
import { appChatId, appMessageId, numberCursor, pageSize } from '../../wire/fields.js';
import { message, messagePage } from '../../wire/results.js';
import { entities, integer, messageText, optional, parseMode, text } from '../../wire/schema.js';

const path = '/api/chats/{chat_id}/messages';

const cursorOf = ({ id }: { readonly id: number }) => String(id);

export const listMessages = defineEndpoint({
  verb: 'GET',
  path,
  summary: 'Lists the messages in a chat, newest first.',
  params: z.object({
    chat_id: appChatId,
    cursor: numberCursor,
    before: optional(integer()).describe(
      'Return messages with lower ids than this, instead of using `cursor`',
    ),
    limit: optional(pageSize),
  }),
  errors: ['chat_not_found', 'not_chat_member'],
  result: messagePage,
  handler: async (context, p) => {
    const { user, store } = context;
    const chat = await readableChat(store, user, p.chat_id);
    const [found, viewer] = await Promise.all([
      store.history.page(chat, p.cursor ?? p.before ?? 0, p.limit ?? limits.page_size_default),
      personViewer(store, chat, user),
    ]);
    const { messages, next, relate } = found ?? fail('chat_not_found');
    const shown = await page(messages, false, cursorOf, async (some) => {
      const own = await asSeenBy(store, user, await relate(some));
      return own.map((message) => viewMessage(message, viewer, store.time));
    });
    const authors = await viewAuthors(context, chat, messages.slice(0, shown.items.length));
    return { ...(next === 0 ? {} : { next_cursor: String(next) }), ...shown, ...authors };
  },
});

export const editMessage = defineEndpoint({
  verb: 'PATCH',
  path: `${path}/{message_id}`,
  inRedis: true,
  summary: 'Replaces the text of a message, or the caption if the call has `caption`.',
  params: z.object({
    chat_id: appChatId,
    message_id: appMessageId,
    text: messageText.optional(),
    caption: text.optional(),
    parse_mode: parseMode,
    entities,
    caption_entities: entities,
  }),
  errors: [
    'chat_not_found',
    'bot_blocked_by_you',
    'cant_write_to_person',
    'cant_write_to_bot',
    'bot_not_found',
    'message_to_edit_not_found',
    'message_cant_be_edited',
    'no_text_to_edit',
    'no_caption_to_edit',
    'message_not_modified',
    'text_empty',
    'text_too_long',
    'caption_too_long',
    'parse_mode_unsupported',
    'entities_unparsable',
    'entities_too_long',
  ],
  result: message,
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    const writer = { id: user.id, isBot: false, chat };
    const given = p.text === undefined && p.caption !== undefined ? 'caption' : 'text';
    const edited = await store.messages.edit(chat, userSender(user), p.message_id, {
      what: given,
      content:
        given === 'caption'
          ? await captionContent(store, writer, p)
          : await textContent(store, writer, { ...p, text: p.text ?? fail('text_empty') }),
      markup: null,
    });
    return viewOwn(store, chat, user, edited);
  },
});

export const deleteMessage = defineEndpoint({
  verb: 'DELETE',
  path: `${path}/{message_id}`,
  inRedis: true,
  summary: 'Deletes a message.',
  params: z.object({ chat_id: appChatId, message_id: appMessageId }),
  errors: ['chat_not_found', 'message_to_delete_not_found', 'message_cant_be_deleted'],
  handler: ({ user, store }, p) =>
    store.messages.remove(chatOfUser(user.id, p.chat_id), userSender(user), p.message_id),
});
