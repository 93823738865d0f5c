import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { post } from '../../api/post_results.js';
import { botPostName, findPost, postFields } from '../../api/posts.js';

/** A post of a channel that the bot can see (behaviour §8). */
export const getPost = defineMethod({
  name: 'getPost',
  summary: 'Returns a post with its reactions.',
  params: z.object(postFields),
  result: post,
  errors: ['post_not_found'],
  handler: ({ bot, store }, p) => findPost(store, botPostName(p), { id: bot.id, isBot: true }, null),
});
