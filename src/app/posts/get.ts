/** Posts as people read them (behaviour §11). */
import { z } from 'zod';
import { chatOfUser } from '../../api/compose.js';
import { defineEndpoint } from '../../api/endpoint.js';
import { appChatId, pageSize } from '../../api/fields.js';
import { findPost, postName, viewPost, visibleChannel } from '../../api/posts.js';
import { integer, optional } from '../../api/schema.js';
import { ApiError } from '../../errors.js';
import { limits } from '../../limits.js';

export const getPostEndpoint = defineEndpoint({
  verb: 'GET',
  path: '/api/posts/{post}',
  summary: 'A post with its reactions.',
  params: z.object({ post: postName }),
  errors: ['post_not_found'],
  handler: ({ user, store }, p) => findPost(store, p.post, { id: user.id, isBot: false }, user),
});

/** Service messages are no posts: a page may read over so many of them. */
const rangesMax = 5;

export const listPosts = defineEndpoint({
  verb: 'GET',
  path: '/api/chats/{chat_id}/posts',
  summary: 'Posts of a channel, newest first; `before` is a message id.',
  params: z.object({ chat_id: appChatId, before: optional(integer()), limit: optional(pageSize) }),
  errors: ['chat_not_found'],
  handler: async ({ user, store }, p) => {
    const chat = await visibleChannel(store, user, chatOfUser(user.id, p.chat_id));
    const limit = p.limit ?? limits.page_size_default;
    const messages = [];
    let before = p.before ?? 0;
    for (let n = 0; n < rangesMax && messages.length < limit; n++) {
      const page = (await store.history.list(chat, before, limit)) ?? [];
      messages.push(...page.filter(({ record }) => record.post !== 0));
      const last = page.at(-1);
      if (!last || page.length < limit) break;
      before = last.id;
    }
    const posts = await Promise.all(
      messages.slice(0, limit).map(async (message) => {
        try {
          const state = await store.posts.find(message.record.post, { id: user.id, isBot: false });
          return viewPost(store, message, state, user);
        } catch (error) {
          // Deleted since the page was read.
          if (error instanceof ApiError && error.kind === 'post_not_found') return null;
          throw error;
        }
      }),
    );
    return posts.filter((post) => post !== null);
  },
});
