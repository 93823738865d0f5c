/** Sends inline queries to bots, and sends chosen results to chats (decision 0054). */
import { z } from 'zod';
import { chatOfUser, userSender, writingErrors } from '../../actions/compose.js';
import { readableChat } from '../../actions/reading.js';
import { viewOwn } from '../../actions/shown_messages.js';
import { startedContent } from '../../content/kinds.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { isLongerThan } from '../../rules/text.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { messageFlags } from '../../store/core/codec.js';
import { botProfile } from '../../store/core/profiles.js';
import type { InlineQuestion } from '../../store/inline/inline_queries.js';
import { appChatId, botId } from '../../wire/fields.js';
import { inlineAnswer } from '../../wire/inline_results.js';
import { message } from '../../wire/results.js';
import { integer, optional, text } from '../../wire/schema.js';

export const askInline = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/inline_query',
  inRedis: true,
  uncounted: true,
  summary: 'Sends an inline query to a bot and waits for its answer, up to 7 seconds.',
  params: z.object({
    chat_id: appChatId,
    bot_id: botId.describe('Id of a bot with inline mode'),
    query: optional(
      text.refine((given) => !isLongerThan(given, limits.inline_query_length_max), {
        error: `a text of up to ${limits.inline_query_length_max} characters`,
      }),
    ),
    offset: optional(
      text.refine((given) => Buffer.byteLength(given) <= limits.inline_offset_bytes_max, {
        error: '`next_offset` of the previous answer',
      }),
    ).describe('`next_offset` of the previous answer'),
  }),
  errors: [
    'chat_not_found',
    'not_chat_member',
    'bot_not_found',
    'bot_not_inline',
    'cant_write_to_bot',
    'inline_unanswered',
  ],
  result: inlineAnswer,
  handler: async ({ user, store, request }, { chat_id, bot_id, query = '', offset = '' }) => {
    const chat = await readableChat(store, user, chat_id);
    const [found, bot] = await Promise.all([store.chats.find(chat), store.bots.find(bot_id)]);
    if (!found) return fail('chat_not_found');
    if (!bot) return fail('bot_not_found');
    if (!bot.inline || bot.state !== undefined) return fail('bot_not_inline');
    const { t = 'person' } = found.profile;
    const chat_type = t === 'person' ? (chat.id === bot.id ? 'sender' : 'private') : t;
    const question: InlineQuestion = { query, offset, chat_type };
    const answer =
      (await store.inline.cached(bot.id, user.id, question)) ??
      (await store.inlineWaits.answer({
        bot: bot.id,
        ask: () => store.inline.ask(bot.id, userProfile(user), question),
        read: (id) => store.inline.read(id, user.id),
        onGone: (listener) => request.onAbort(listener),
      })) ??
      fail('inline_unanswered');
    return { inline_query_id: answer.id, ...answer.list };
  },
});

export const sendInlineResult = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/inline_result',
  inRedis: true,
  summary: 'Sends an inline query’s result to a chat, as a message from the caller.',
  params: z.object({
    chat_id: appChatId,
    inline_query_id: text,
    result_id: text,
    reply_to_message_id: optional(integer()),
  }),
  errors: [
    ...writingErrors,
    'inline_result_not_found',
    'sending_not_permitted',
    'posting_not_allowed',
    'reply_not_found',
    'entities_too_long',
  ],
  result: message,
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    const sender = userSender(user);
    const chosen = await store.inline.result(p.inline_query_id, user.id, p.result_id);
    const bot = chosen && (await store.bots.find(chosen.bot));
    // A repeated request finds the message that it sent before, even if the answer to the query has expired meanwhile.
    const sent = await store.messages.send(chat, sender, () => {
      if (!chosen || !bot?.inline || bot.state !== undefined) return fail('inline_result_not_found');
      return {
        ...chosen.message,
        content: startedContent(chosen.message.content, store.time.nowSeconds()),
        flags: messageFlags.inline,
        replyTo: p.reply_to_message_id ?? 0,
        allowMissingReply: false,
        origin: { via: botProfile(bot) },
      };
    });
    if (chosen && bot?.inline?.feedback) {
      const { query } = chosen;
      const inline_message_id = store.inlineIds.idOf(bot.id, { chat, messageId: sent.id });
      await store.inline.tellChosen(bot.id, sender.profile, {
        ...{ result_id: p.result_id, query },
        ...(sent.record.markup === null ? {} : { inline_message_id }),
      });
    }
    return viewOwn(store, chat, user, sent);
  },
});
