import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { botPostName, findPost, postFields } from '../../api/posts.js';

/** A post of a channel that the bot can see (behaviour §8). */
export const getPost = defineMethod({
  name: 'getPost',
  summary: 'Tells of a post and the reactions on it.',
  params: z.object(postFields),
  errors: ['post_not_found'],
  handler: ({ bot, store }, p) => findPost(store, botPostName(p), { id: bot.id, isBot: true }, null),
});
