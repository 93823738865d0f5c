import { z } from 'zod';
import { botSender, chatOfBot, inlineKeyboardErrors, keyboard } from '../../actions/compose.js';
import { postContentErrors, postContentParams, withPostContent } from '../../actions/post_content.js';
import { viewPost } from '../../actions/posts.js';
import { fail } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { messageFlags } from '../../store/core/codec.js';
import { isDirect } from '../../store/core/keys.js';
import { post } from '../../wire/post_results.js';
import { boolean, chatId, optional, replyMarkup } from '../../wire/schema.js';

/** Publishes a post in a channel. Does the same as the send methods, but returns a `Post` (behaviour §8). */
export const createPost = defineMethod({
  name: 'createPost',
  effect: 'grow',
  summary: 'Publishes a post in a channel.',
  params: z.object({
    chat_id: chatId,
    ...postContentParams,
    reply_markup: replyMarkup,
    disable_notification: optional(boolean),
  }),
  result: post,
  errors: [
    'chat_id_empty',
    'chat_not_found',
    'not_channel_member',
    'posting_not_allowed',
    ...postContentErrors,
    ...inlineKeyboardErrors,
  ],
  handler: async (context, p) => {
    const { bot, store } = context;
    const chat = chatOfBot(bot.id, p.chat_id);
    const found = isDirect(chat) ? null : await store.chats.find(chat);
    if (found?.kind !== 'channel' && found?.kind !== 'private') fail('chat_not_found');
    const markup = keyboard(p.reply_markup);
    const message = await withPostContent(context, chat, p, (make) =>
      store.messages.send(chat, botSender(bot), async () => {
        const { what, content } = await make();
        return {
          // Refuses a caption without media, because a new post needs a text or media.
          content: what === 'caption' ? fail('text_empty') : content,
          markup,
          flags: p.disable_notification ? messageFlags.silent : 0,
          replyTo: 0,
          allowMissingReply: false,
        };
      }),
    );
    const at = { post: message.record.post, chat, messageId: message.id };
    const state = { ...at, version: 0, reactions: [], own: [] };
    return viewPost(store, message, state, null);
  },
});
