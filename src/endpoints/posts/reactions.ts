import { z } from 'zod';
import { postName, postOf, reactionPayload } from '../../actions/posts.js';
import { heart, reactionEmoji } from '../../rules/emoji.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageOfRows } from '../../server/pages.js';
import { userProfile } from '../../store/chats/chats.js';
import type { User } from '../../store/core/control.js';
import type { ReactionChange, Reactor } from '../../store/posts/posts.js';
import type { Store } from '../../store/store.js';
import { viewStranger } from '../../view/users.js';
import { pageSize } from '../../wire/fields.js';
import { reactionPayload as payload, reactorPage } from '../../wire/post_results.js';
import { answer, optional, text } from '../../wire/schema.js';

const reactions = '/api/posts/{post}/reactions';
const like = '/api/posts/{post}/like';
const post = z.object({ post: postName });
const emoji = z.string({
  error: ({ input }) => (input === undefined ? 'given' : answer('reaction_invalid')),
});

const react = async (
  { user, store }: { readonly user: User; readonly store: Store },
  name: string,
  change: ReactionChange,
) => reactionPayload(await store.posts.react(postOf(store, name), user, change), user);

export const addReaction = defineEndpoint({
  verb: 'POST',
  path: reactions,
  inRedis: true,
  summary: 'Adds the caller’s reaction to a post.',
  params: post.extend({ emoji }),
  body: payload,
  errors: ['post_not_found', 'reaction_invalid', 'too_many_reactions'],
  handler: (context, p) => react(context, p.post, { what: 'set', emoji: reactionEmoji(p.emoji) }),
});

export const removeReactions = defineEndpoint({
  verb: 'DELETE',
  path: reactions,
  inRedis: true,
  summary: 'Removes one or all of the caller’s reactions from a post.',
  // Without this check, an empty emoji would remove all reactions, as an absent emoji does.
  params: post.extend({ emoji: emoji.optional() }),
  body: payload,
  errors: ['post_not_found', 'reaction_invalid'],
  handler: (context, { post: name, emoji: given }) =>
    react(
      context,
      name,
      given === undefined ? { what: 'clear' } : { what: 'remove', emoji: reactionEmoji(given) },
    ),
});

/** Adds a like. Older clients use this endpoint (interface §9). */
export const addLike = defineEndpoint({
  verb: 'POST',
  path: like,
  inRedis: true,
  summary: 'Adds the caller’s heart to a post.',
  params: post,
  body: payload,
  errors: ['post_not_found', 'too_many_reactions'],
  handler: (context, p) => react(context, p.post, { what: 'set', emoji: heart }),
});

export const removeLike = defineEndpoint({
  verb: 'DELETE',
  path: like,
  inRedis: true,
  summary: 'Removes the caller’s heart from a post.',
  params: post,
  body: payload,
  errors: ['post_not_found'],
  handler: (context, p) => react(context, p.post, { what: 'remove', emoji: heart }),
});

export const listReactions = defineEndpoint({
  verb: 'GET',
  path: reactions,
  summary: 'Lists the people who reacted with an emoji, newest first.',
  params: post.extend({ emoji: emoji.optional(), cursor: optional(text), limit: optional(pageSize) }),
  result: reactorPage,
  errors: ['post_not_found', 'reaction_invalid'],
  handler: async ({ user, store }, p) => {
    const only = p.emoji === undefined ? undefined : reactionEmoji(p.emoji);
    const found = await store.posts.find(postOf(store, p.post), { id: user.id, isBot: false });
    const limit = p.limit ?? limits.page_size_default;
    const reactors = await store.posts.reactors(found.post, only, p.cursor ?? '', limit + 1);
    const view = async ({ id, user: user_id, emoji: set, date }: Reactor) => {
      const person = await store.users.find(id);
      return { user_id, emoji: set, date, ...(person ? { user: viewStranger(userProfile(person)) } : {}) };
    };
    return pageOfRows(reactors, limit, view, ({ cursor }) => cursor);
  },
});
