import { z } from 'zod';
import { botSender, chatOfBot, keyboard, keyboardErrors, textContent } from '../../api/compose.js';
import { defineMethod } from '../../api/method.js';
import { post } from '../../api/post_results.js';
import { viewPost } from '../../api/posts.js';
import {
  boolean,
  chatId,
  entities,
  messageText,
  optional,
  parseMode,
  replyMarkup,
} from '../../api/schema.js';
import { fail } from '../../errors.js';
import { messageFlags } from '../../store/codec.js';
import { isDirect } from '../../store/keys.js';

/** Publishes a post in a channel: the same as sending a message there, answered with the Post (behaviour §8). */
export const createPost = defineMethod({
  name: 'createPost',
  summary: 'Publishes a post in a channel.',
  params: z.object({
    chat_id: chatId,
    text: messageText,
    parse_mode: parseMode,
    entities,
    reply_markup: replyMarkup,
    disable_notification: optional(boolean),
  }),
  result: post,
  errors: [
    'chat_id_empty',
    'chat_not_found',
    'not_channel_member',
    'posting_not_allowed',
    'text_empty',
    'text_too_long',
    'parse_mode_unsupported',
    'entities_unparsable',
    ...keyboardErrors,
  ],
  handler: async ({ bot, store }, p) => {
    const chat = await chatOfBot(bot.id, p.chat_id);
    const found = isDirect(chat) ? null : await store.chats.find(chat);
    if (found?.kind !== 'channel' && found?.kind !== 'private') fail('chat_not_found');
    const message = await store.messages.send(chat, botSender(bot), {
      content: await textContent(store, p),
      markup: keyboard(p.reply_markup),
      flags: p.disable_notification ? messageFlags.silent : 0,
      replyTo: 0,
      allowMissingReply: false,
    });
    const state = { post: message.record.post, chat, messageId: message.id, reactions: [], own: [] };
    return viewPost(store, message, state, null);
  },
});
