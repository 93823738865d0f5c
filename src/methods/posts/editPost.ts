import { z } from 'zod';
import { botSender, keyboard, keyboardErrors, textContent } from '../../api/compose.js';
import { defineMethod } from '../../api/method.js';
import { post } from '../../api/post_results.js';
import { botPostName, postFields, postOf, viewPost } from '../../api/posts.js';
import { entities, optional, parseMode, replyMarkup, text } from '../../api/schema.js';
import { ApiError, fail } from '../../errors.js';
import { partitionOfPost } from '../../store/keys.js';
import type { Edit } from '../../store/messages.js';
import type { PostState } from '../../store/posts.js';

/** Changes a post under the rules and limits of edits (behaviour §7, §8). */
export const editPost = defineMethod({
  name: 'editPost',
  summary: 'Replaces the text of a post, or its inline keyboard.',
  params: z.object({
    ...postFields,
    text: optional(text).describe('The new text; absent to change the keyboard alone'),
    parse_mode: parseMode,
    entities,
    reply_markup: replyMarkup,
  }),
  result: post,
  errors: [
    'post_not_found',
    'message_cant_be_edited',
    'no_text_to_edit',
    'message_not_modified',
    'text_empty',
    'text_too_long',
    'parse_mode_unsupported',
    'entities_unparsable',
    ...keyboardErrors,
  ],
  handler: async ({ bot, store }, p) => {
    const post = postOf(store, botPostName(p));
    const markup = keyboard(p.reply_markup);
    if (p.text === undefined && p.reply_markup === undefined) fail('text_empty');
    const find = () => store.posts.find(post, { id: bot.id, isBot: true });
    let state: PostState | undefined;
    const edited = await store.messages.editFound(partitionOfPost(post), botSender(bot), async () => {
      state = await find();
      const edit: Edit =
        p.text === undefined
          ? { what: 'markup', markup }
          : { what: 'text', content: await textContent(store, { ...p, text: p.text }), markup };
      return { ...state, edit };
    });
    state ??= await find().catch((error) => {
      // Made by a former run of the call; the post is gone by now.
      if (!(error instanceof ApiError && error.kind === 'post_not_found')) throw error;
      return { post, chat: edited.chat, messageId: edited.id, reactions: [], own: [] };
    });
    return viewPost(store, edited, state, null);
  },
});
