import { z } from 'zod';
import { botSender, keyboard } from '../../api/compose.js';
import { defineMethod } from '../../api/method.js';
import { postContentErrors, postContentParams, withPostContent } from '../../api/post_content.js';
import { post } from '../../api/post_results.js';
import { botPostName, postFields, postOf, viewPost } from '../../api/posts.js';
import { replyMarkup } from '../../api/schema.js';
import type { Edit } from '../../store/messages.js';

/** Changes a post under the rules and limits of edits (behaviour §7, §8). */
export const editPost = defineMethod({
  name: 'editPost',
  summary: 'Replaces the text of a post, its media or their caption, or its inline keyboard.',
  params: z.object({
    ...postFields,
    ...postContentParams,
    reply_markup: replyMarkup,
  }),
  result: post,
  errors: [
    'post_not_found',
    'message_cant_be_edited',
    'no_text_to_edit',
    'message_not_modified',
    'no_caption_to_edit',
    'media_cant_be_edited',
    ...postContentErrors,
    'button_data_invalid',
  ],
  handler: async (context, p) => {
    const { bot, store } = context;
    const state = await store.posts.find(postOf(store, botPostName(p)), { id: bot.id, isBot: true });
    const markup = keyboard(p.reply_markup);
    const edit = (change: Edit) => store.messages.edit(state.chat, botSender(bot), state.messageId, change);
    const keyboardAlone =
      p.reply_markup !== undefined && [p.text, p.media, p.caption].every((given) => given == null);
    const edited = keyboardAlone
      ? await edit({ what: 'markup', markup })
      : await withPostContent(context, p, (content) => edit({ ...content, markup }));
    return viewPost(store, edited, state, null);
  },
});
