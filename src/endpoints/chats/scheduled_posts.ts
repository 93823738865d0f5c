/** Lets the authors of a channel schedule posts (decision 0087). */
import { z } from 'zod';
import { chatOfUser } from '../../actions/compose.js';
import { readableChat } from '../../actions/reading.js';
import {
  checkTime,
  isFinal,
  publishClaimed,
  scheduledContent,
  viewScheduled,
} from '../../actions/scheduled_posts.js';
import { viewOwn } from '../../actions/shown_messages.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageById } from '../../server/pages.js';
import { isDirect } from '../../store/core/keys.js';
import { appChatId, numberCursor, pageSize } from '../../wire/fields.js';
import { message } from '../../wire/results.js';
import { scheduledPost, scheduledPosts } from '../../wire/scheduled_results.js';
import { entities, integer, optional, text } from '../../wire/schema.js';

const path = '/api/chats/{chat_id}/scheduled_posts';
const onePath = `${path}/{scheduled_post_id}`;

const textErrors = ['text_empty', 'text_too_long', 'entities_too_long'] as const;

const publishAt = integer().describe('Unix time in seconds, 1 minute to 365 days ahead');
const postText = text.describe(`Up to ${limits.text_length_max} characters`);
const one = { chat_id: appChatId, scheduled_post_id: integer().describe('`id` of the scheduled post') };

export const listScheduledPosts = defineEndpoint({
  verb: 'GET',
  path,
  summary:
    'Lists the posts that the caller has scheduled in a channel, including posts that could not be published.',
  params: z.object({ chat_id: appChatId, cursor: numberCursor, limit: optional(pageSize) }),
  errors: ['chat_not_found'],
  result: scheduledPosts,
  handler: async ({ user, store }, p) => {
    const limit = p.limit ?? limits.page_size_default;
    const chat = chatOfUser(user.id, p.chat_id);
    return pageById(
      await store.scheduledPosts.list(chat, user.id, p.cursor ?? 0, limit + 1),
      limit,
      viewScheduled,
    );
  },
});

export const schedulePost = defineEndpoint({
  verb: 'POST',
  path,
  summary: 'Schedules a post in a channel.',
  params: z.object({ chat_id: appChatId, text: postText, entities, publish_at: publishAt }),
  errors: [
    'chat_not_found',
    'not_chat_member',
    'not_a_channel',
    'posting_not_allowed',
    ...textErrors,
    'schedule_time_wrong',
    'too_many_scheduled_posts',
  ],
  result: scheduledPost,
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    if (isDirect(chat)) fail('not_a_channel');
    await store.unlessApplied(async () => {
      await readableChat(store, user, p.chat_id);
      checkTime(store, p.publish_at);
    });
    const content = await scheduledContent(store, user.id, chat, p.text, p.entities);
    const post = await store.scheduledPosts.add(chat, user.id, content, p.publish_at);
    return viewScheduled(post ?? fail('scheduled_post_not_found'));
  },
});

export const changeScheduledPost = defineEndpoint({
  verb: 'PATCH',
  path: onePath,
  summary:
    'Changes the text or the time of a scheduled post. A post that could not be published is scheduled again.',
  params: z.object({ ...one, text: optional(postText), entities, publish_at: optional(publishAt) }),
  errors: [
    'chat_not_found',
    ...textErrors,
    'schedule_time_wrong',
    'too_many_scheduled_posts',
    'scheduled_post_not_found',
    'scheduled_post_publishing',
  ],
  result: scheduledPost,
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    const { scheduled_post_id: id, publish_at: at = null } = p;
    await store.unlessApplied(async () => {
      if (at !== null) return void checkTime(store, at);
      const post = await store.scheduledPosts.find(user.id, id);
      // A failed post whose time has passed needs a new time.
      if (post !== null && post.publishAt * 1_000 <= store.time.now()) fail('schedule_time_wrong');
    });
    const content =
      p.text === undefined ? null : await scheduledContent(store, user.id, chat, p.text, p.entities);
    const post = await store.scheduledPosts.change(chat, user.id, id, content, at);
    return viewScheduled(post ?? fail('scheduled_post_not_found'));
  },
});

export const deleteScheduledPost = defineEndpoint({
  verb: 'DELETE',
  path: onePath,
  summary: 'Deletes a scheduled post.',
  params: z.object(one),
  errors: ['chat_not_found', 'scheduled_post_not_found', 'scheduled_post_publishing'],
  handler: ({ user, store }, p) =>
    store.scheduledPosts.remove(chatOfUser(user.id, p.chat_id), user.id, p.scheduled_post_id),
});

export const publishScheduledPost = defineEndpoint({
  verb: 'POST',
  path: `${onePath}/publish`,
  summary: 'Publishes a scheduled post now.',
  params: z.object(one),
  errors: [
    'chat_not_found',
    'not_chat_member',
    'posting_not_allowed',
    'scheduled_post_not_found',
    'scheduled_post_publishing',
  ],
  result: message,
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    const post = await store.scheduledPosts.claim(chat, user.id, p.scheduled_post_id);
    try {
      return viewOwn(store, chat, user, await publishClaimed(store, post));
    } catch (error) {
      // After any other error, the post may be published already. The background task then completes the publication.
      if (isFinal(error)) await store.scheduledPosts.putBack(post);
      throw error;
    }
  },
});
