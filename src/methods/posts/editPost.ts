import { z } from 'zod';
import { botSender, keyboard, textContent } from '../../api/compose.js';
import { defineMethod } from '../../api/method.js';
import { botPostName, postFields, postOf, viewPost } from '../../api/posts.js';
import { entities, optional, parseMode, replyMarkup, text } from '../../api/schema.js';
import { fail } from '../../errors.js';

/** Changes a post under the rules and limits of edits (behaviour §7, §8). */
export const editPost = defineMethod({
  name: 'editPost',
  summary: 'Replaces the text of a post, or its inline keyboard.',
  params: z.object({
    ...postFields,
    text: optional(text),
    parse_mode: parseMode,
    entities,
    reply_markup: replyMarkup,
  }),
  errors: [
    'post_not_found',
    'message_cant_be_edited',
    'no_text_to_edit',
    'message_not_modified',
    'text_empty',
    'text_too_long',
    'parse_mode_unsupported',
    'entities_unparsable',
    'button_data_invalid',
  ],
  handler: async ({ bot, store }, p) => {
    const who = { id: bot.id, isBot: true };
    const state = await store.posts.find(postOf(store, botPostName(p)), who);
    const markup = keyboard(p.reply_markup);
    if (p.text === undefined && p.reply_markup === undefined) fail('text_empty');
    const edited = await store.messages.edit(
      state.chat,
      botSender(bot),
      state.messageId,
      p.text === undefined
        ? { what: 'markup', markup }
        : { what: 'text', content: await textContent(store, { ...p, text: p.text }), markup },
    );
    return viewPost(store, edited, state, null);
  },
});
