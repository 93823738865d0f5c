import { z } from 'zod';
import { chatOfUser } from '../../actions/compose.js';
import { withResults } from '../../actions/polls.js';
import { findPost, postName, viewPost, visibleChannel } from '../../actions/posts.js';
import { ApiError } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { each, page } from '../../server/pages.js';
import type { StoredMessage } from '../../store/core/stored_message.js';
import { appChatId, numberCursor, pageSize } from '../../wire/fields.js';
import { post } from '../../wire/post_results.js';
import { pageOf } from '../../wire/results.js';
import { integer, optional } from '../../wire/schema.js';

export const getPostEndpoint = defineEndpoint({
  verb: 'GET',
  path: '/api/posts/{post}',
  summary: 'Returns a post with its reactions.',
  params: z.object({ post: postName }),
  result: post,
  errors: ['post_not_found'],
  handler: ({ user, store }, p) => findPost(store, p.post, { id: user.id, isBot: false }, user),
});

/** The maximum number of reads for one page. Service messages are not posts, so a read may yield less than a page. */
const rangesMax = 5;

export const listPosts = defineEndpoint({
  verb: 'GET',
  path: '/api/chats/{chat_id}/posts',
  summary: 'Lists the posts of a channel, newest first.',
  params: z.object({
    chat_id: appChatId,
    cursor: numberCursor,
    before: optional(integer()).describe(
      'Return posts with lower message ids than this, instead of using `cursor`',
    ),
    limit: optional(pageSize),
  }),
  result: pageOf(post),
  errors: ['chat_not_found'],
  handler: async ({ user, store }, p) => {
    const chat = await visibleChannel(store, user, chatOfUser(user.id, p.chat_id));
    const limit = p.limit ?? limits.page_size_default;
    const messages: StoredMessage[] = [];
    let next = p.cursor ?? p.before ?? 0;
    for (let n = 0; n < rangesMax && messages.length < limit; n++) {
      const found = await store.history.page(chat, next, limit - messages.length);
      messages.push(...(found?.messages ?? []).filter(({ record }) => record.post !== 0));
      next = found?.next ?? 0;
      if (next === 0) break;
    }
    const view = async (message: StoredMessage) => {
      try {
        const who = { id: user.id, isBot: false };
        const [state, [shown = message]] = await Promise.all([
          store.posts.find(message.record.post, who),
          withResults(store, who, [message]),
        ]);
        return viewPost(store, shown, state, user);
      } catch (error) {
        // Skips a post that was deleted after its page was read.
        if (error instanceof ApiError && error.kind === 'post_not_found') return null;
        throw error;
      }
    };
    const shown = await page(messages, false, ({ id }) => String(id), each(view));
    return next === 0 ? shown : { next_cursor: String(next), ...shown };
  },
});
