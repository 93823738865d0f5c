import { z } from 'zod';
import { botSender, inlineKeyboardErrors, keyboard } from '../../actions/compose.js';
import {
  type PostContent,
  postContentErrors,
  postContentParams,
  withPostContent,
} from '../../actions/post_content.js';
import { botPostName, postFields, postOf, viewPost } from '../../actions/posts.js';
import { ApiError } from '../../errors.js';
import { defineMethod } from '../../server/method.js';
import { partitionOfPost } from '../../store/core/keys.js';
import type { PostState } from '../../store/posts/posts.js';
import { post } from '../../wire/post_results.js';
import { replyMarkup } from '../../wire/schema.js';

/** Edits a post. The rules and limits of message edits apply (behaviour §7, §8). */
export const editPost = defineMethod({
  name: 'editPost',
  effect: 'grow',
  summary: 'Replaces the text, media, caption or inline keyboard of a post.',
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
    ...inlineKeyboardErrors,
  ],
  handler: async (context, p) => {
    const { bot, store } = context;
    const post = postOf(store, botPostName(p));
    const markup = keyboard(p.reply_markup);
    const find = () => store.posts.find(post, { id: bot.id, isBot: true });
    let state: PostState | undefined;
    const edit = (make: () => Promise<PostContent | { readonly what: 'markup' }>) =>
      store.messages.editFound(partitionOfPost(post), botSender(bot), async () => {
        state = await find();
        return { ...state, edit: { ...(await make()), markup } };
      });
    const keyboardAlone =
      p.reply_markup !== undefined && [p.text, p.media, p.caption].every((given) => given == null);
    const edited = keyboardAlone
      ? await edit(async () => ({ what: 'markup' }))
      : await withPostContent(context, null, p, edit);
    state ??= await find().catch((error) => {
      // If the post no longer exists, it was deleted after an earlier attempt of this call had edited it.
      if (!(error instanceof ApiError && error.kind === 'post_not_found')) throw error;
      return { post, chat: edited.chat, messageId: edited.id, version: 0, reactions: [], own: [] };
    });
    return viewPost(store, edited, state, null);
  },
});
