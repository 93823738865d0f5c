import { z } from 'zod';
import { botPostName, findPost, postFields } from '../../actions/posts.js';
import { defineMethod } from '../../server/method.js';
import { post } from '../../wire/post_results.js';

export const getPost = defineMethod({
  name: 'getPost',
  effect: 'read',
  summary: 'Returns a post with its reactions.',
  params: z.object(postFields),
  result: post,
  errors: ['post_not_found'],
  handler: ({ bot, store }, p) => findPost(store, botPostName(p), { id: bot.id, isBot: true }, null),
});
