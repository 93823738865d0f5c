/** Lets authors schedule posts in a channel (decision 0087). */
import { z } from 'zod';
import { chatOfUser } from '../../actions/compose.js';
import { takeMedia, thumbnailErrors, withMedia } from '../../actions/media.js';
import { readableChat } from '../../actions/reading.js';
import {
  checkTime,
  isFinal,
  publishClaimed,
  rewordedContent,
  scheduledWords,
  viewScheduled,
} from '../../actions/scheduled_posts.js';
import { amount, movingParams, onlyKind, personFileTypes } from '../../actions/send_media.js';
import { viewOwn } from '../../actions/shown_messages.js';
import { fail } from '../../errors.js';
import { type MediaFile, mediaOf } from '../../files/file_id.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint, type EndpointContext, replied } from '../../server/endpoint.js';
import { pageById } from '../../server/pages.js';
import type { User } from '../../store/core/control.js';
import { type ChatRef, isDirect } from '../../store/core/keys.js';
import type { ScheduledPost } from '../../store/posts/scheduled_posts.js';
import { appChatId, numberCursor, pageSize } from '../../wire/fields.js';
import { message } from '../../wire/results.js';
import { scheduledPost, scheduledPosts } from '../../wire/scheduled_results.js';
import { entities, integer, optional, text } from '../../wire/schema.js';

const path = '/api/chats/{chat_id}/scheduled_posts';
const onePath = `${path}/{scheduled_post_id}`;

const textErrors = ['text_empty', 'text_too_long', 'entities_too_long'] as const;

const uploadErrors = [
  'sending_not_permitted',
  'caption_too_long',
  'wrong_file_id',
  'file_type_mismatch',
  'file_empty',
  'file_too_big',
  'too_much_stored',
  'photo_invalid',
  'video_note_invalid',
  ...thumbnailErrors,
] as const;

const publishAt = integer().describe('Unix time in seconds, 1 minute to 365 days ahead');
const postText = text.describe(
  `Up to ${limits.text_length_max} characters, or up to ${limits.caption_length_max} as a caption`,
);
const upload = optional(text).describe('An uploaded part or `attach://<name>` of an uploaded part');

const scheduleParams = z.object({
  chat_id: appChatId,
  text: optional(postText),
  entities,
  photo: upload,
  video: upload,
  animation: upload,
  audio: upload,
  voice: upload,
  document: upload,
  video_note: upload.describe('A square video, as an uploaded part. It has no caption'),
  ...movingParams,
  length: amount.describe('Sides of a video note. Used only if Petrel cannot measure the file itself'),
  performer: optional(text).describe('Performer of an audio file'),
  title: optional(text).describe('Title of an audio file'),
  publish_at: publishAt,
});
type ScheduleParams = z.output<typeof scheduleParams>;

const one = { chat_id: appChatId, scheduled_post_id: integer().describe('`id` of the scheduled post') };

export const listScheduledPosts = defineEndpoint({
  verb: 'GET',
  path,
  summary:
    'Lists the posts that the caller has scheduled in a channel, including those that could not be published.',
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

const keysOf = (file?: MediaFile): string[] =>
  [file?.key, file?.thumb?.key].filter((key) => key !== undefined);

/** Schedules the post that the call describes. If the post is refused, removes its uploaded file. */
async function addPost(
  context: EndpointContext<User>,
  p: ScheduleParams,
  chat: ChatRef,
): Promise<ScheduledPost | null> {
  const { user, store, files, uploads } = context;
  const type = onlyKind(personFileTypes, p, uploads);
  const given = { text: p.text ?? '', entities: p.entities };
  const words = await scheduledWords(store, user.id, chat, given, {
    type,
    above: p.show_caption_above_media,
  });
  const check = async () => {
    await readableChat(store, user, p.chat_id);
    checkTime(store, p.publish_at);
  };
  const add = (file?: MediaFile) => {
    const content = file ? { ...words, media: mediaOf(files, file, p.has_spoiler) } : words;
    return store.scheduledPosts.add(chat, user.id, { content, files: keysOf(file) }, p.publish_at);
  };
  if (type === undefined) {
    await store.unlessApplied(check);
    return add();
  }
  const side = type === 'video_note' ? { width: p.length, height: p.length } : {};
  const take = async () => {
    const taken = await takeMedia(context, type, type, p[type], { ...p, ...side });
    return taken.uploaded ? taken : fail('wrong_file_id');
  };
  return withMedia(context, take, async (taking) => {
    let file: MediaFile | undefined;
    // Stores the file only if no earlier attempt of this request was applied. Otherwise the file is already stored.
    await store.unlessApplied(async () => {
      await check();
      file = (await taking()).file;
    });
    return add(file);
  });
}

export const schedulePost = defineEndpoint({
  verb: 'POST',
  path,
  summary: 'Schedules a post in a channel: a text, or an uploaded file with an optional caption.',
  params: scheduleParams,
  errors: [
    'chat_not_found',
    'not_chat_member',
    'not_a_channel',
    'posting_not_allowed',
    ...textErrors,
    ...uploadErrors,
    'schedule_time_wrong',
    'too_many_scheduled_posts',
  ],
  result: scheduledPost,
  handler: async (context, p) => {
    const chat = chatOfUser(context.user.id, p.chat_id);
    if (isDirect(chat)) fail('not_a_channel');
    const post = await addPost(context, p, chat);
    return viewScheduled(post ?? fail('scheduled_post_not_found'));
  },
});

export const changeScheduledPost = defineEndpoint({
  verb: 'PATCH',
  path: onePath,
  summary:
    'Changes the text, caption or time of a scheduled post, but not its file. If publishing the post has failed, this call schedules the post again.',
  params: z.object({ ...one, text: postText.optional(), entities, publish_at: optional(publishAt) }),
  errors: [
    'chat_not_found',
    ...textErrors,
    'caption_too_long',
    'schedule_time_wrong',
    'too_many_scheduled_posts',
    'scheduled_post_not_found',
    'scheduled_post_publishing',
  ],
  result: scheduledPost,
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    const { scheduled_post_id: id, publish_at: at = null } = p;
    const former = await store.scheduledPosts.find(user.id, id);
    await store.unlessApplied(async () => {
      if (at !== null) checkTime(store, at);
      // A post that could not be published needs a new time if its old time has passed.
      else if (former !== null && former.publishAt * 1_000 <= store.time.now()) fail('schedule_time_wrong');
    });
    const words = p.text === undefined ? null : { text: p.text, entities: p.entities };
    const content = words && (await rewordedContent(store, user.id, chat, words, former?.content ?? {}));
    const post = await store.scheduledPosts.change(chat, user.id, id, content, at);
    return viewScheduled(post ?? fail('scheduled_post_not_found'));
  },
});

export const downloadScheduledFile = defineEndpoint({
  verb: 'GET',
  path: `${onePath}/file`,
  summary: 'Downloads a scheduled post’s file, or a range of the file’s bytes.',
  params: z.object(one),
  errors: ['chat_not_found', 'scheduled_post_not_found', 'range_not_satisfiable'],
  contentType: 'application/octet-stream',
  handler: async ({ user, store, files, downloads, request }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    const post = await store.scheduledPosts.find(user.id, p.scheduled_post_id);
    const media = post?.chat.id === chat.id ? post.content.media : undefined;
    if (media === undefined) return fail('scheduled_post_not_found');
    await downloads.send(request, files.fileOf(media.id), user.id);
    return replied;
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
      // Puts the post back only after an error that rules out a publication. After any other error, the background task
      // finishes the publication, because the post may already be published.
      if (isFinal(error)) await store.scheduledPosts.putBack(post);
      throw error;
    }
  },
});
