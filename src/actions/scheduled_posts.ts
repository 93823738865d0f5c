/** Schedules posts of people in channels, and publishes them (decision 0087). */
import { ApiError, type ErrorName, fail } from '../errors.js';
import type { EntityInput } from '../rules/entities/format.js';
import type { Content, Media, MediaType, Profile } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import type { ChatRef } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import { storeLimits as limits } from '../store/limits.js';
import type { NewMessage } from '../store/messages/messages.js';
import type { ClaimedPost, ScheduledPost } from '../store/posts/scheduled_posts.js';
import type { Store } from '../store/store.js';
import { viewEntities } from '../view/messages.js';
import { captionContent, textContent, userSender } from './compose.js';

interface Words {
  readonly text: string;
  readonly entities: readonly EntityInput[] | undefined;
}

/**
 * Returns the text of a post, or the caption of its file. Errors: those of `textContent` and of `captionContent`, and
 * `parameter_wrong` if a video note has a caption.
 */
export async function scheduledWords(
  store: Store,
  author: number,
  chat: ChatRef,
  { text, entities }: Words,
  file: { readonly type: MediaType | undefined; readonly above?: boolean | undefined },
): Promise<Content> {
  const writer = { id: author, isBot: false, chat };
  if (file.type === undefined) return textContent(store, writer, { text, entities });
  if (file.type === 'video_note' && text !== '')
    fail('parameter_wrong', { name: 'text', what: 'absent if "video_note" is given' });
  const given = { caption: text, caption_entities: entities, show_caption_above_media: file.above };
  return captionContent(store, writer, given);
}

/** Replaces the text or the caption of a post, and keeps its file. Errors: those of `scheduledWords`. */
export async function rewordedContent(
  store: Store,
  author: number,
  chat: ChatRef,
  words: Words,
  { media, above }: Pick<Content, 'media' | 'above'>,
): Promise<Content> {
  const content = await scheduledWords(store, author, chat, words, { type: media?.type, above });
  return media === undefined ? content : { ...content, media };
}

/** Checks the time of a post, in Unix seconds. Error: `schedule_time_wrong`. */
export function checkTime(store: Store, at: number): number {
  const aheadMs = at * 1_000 - store.time.now();
  const isValid = aheadMs >= limits.schedule_ahead_ms_min && aheadMs <= limits.schedule_ahead_ms_max;
  return isValid ? at : fail('schedule_time_wrong');
}

/** Leaves out the `file_id`, so that no other message can use the file, which is removed together with the post. */
const viewFile = ({ type, name, mime, size, width, height, duration }: Media) => ({
  type,
  ...(name === undefined ? {} : { file_name: name }),
  ...(mime === undefined ? {} : { mime_type: mime }),
  ...(size === undefined ? {} : { file_size: size }),
  ...(width === undefined ? {} : { width }),
  ...(height === undefined ? {} : { height }),
  ...(duration === undefined ? {} : { duration }),
});

export function viewScheduled({ id, chat, content, publishAt, failure }: ScheduledPost) {
  const entities = viewEntities(content.entities);
  return {
    id,
    chat_id: chat.id,
    text: content.text ?? '',
    ...(entities === undefined ? {} : { entities }),
    ...(content.media === undefined ? {} : { media: viewFile(content.media) }),
    publish_at: publishAt,
    ...(failure === null ? {} : { failure: new ApiError(failure).message }),
  };
}

const inputOf = ({ user, ...entity }: NonNullable<Content['entities']>[number]): EntityInput => ({
  ...entity,
  ...(user === undefined ? {} : { user: { id: (user as Profile).id } }),
});

/** Sends the post, unless an earlier attempt has sent it. Errors: those of `textContent` and of `Messages.send`. */
async function send(store: Store, post: ClaimedPost, author: User | null): Promise<StoredMessage> {
  if (author === null) return fail('posting_not_allowed');
  // Called only if no earlier attempt has sent the post.
  const messageOf = async (): Promise<NewMessage> => {
    if (author.state === 'suspended') return fail('posting_not_allowed');
    const { text = '', entities } = post.content;
    const words = { text, entities: entities?.map(inputOf) };
    const content = await rewordedContent(store, author.id, post.chat, words, post.content);
    return { content, markup: null, flags: 0, replyTo: 0, allowMissingReply: false };
  };
  return store.under(post.seed, true).messages.send(post.chat, userSender(author), messageOf);
}

/**
 * The errors after which a post stays scheduled. When the claim on the post ends, a process tries to publish the post
 * again.
 */
const passing: ReadonlySet<ErrorName> = new Set<ErrorName>(['unavailable', 'too_many_requests', 'internal']);

export const isFinal = (error: unknown): error is ApiError =>
  error instanceof ApiError && !passing.has(error.kind);

/**
 * Publishes a claimed post and removes it from the scheduled posts. If a process dies in between, the next attempt
 * finds the sent message by its request id. Errors: those of `send`, and `publication_unknown` if the post may have
 * been sent so long ago that its request id is no longer stored.
 */
export async function publishClaimed(store: Store, post: ClaimedPost): Promise<StoredMessage> {
  if (post.isUnknown) fail('publication_unknown');
  const message = await send(store, post, await store.users.find(post.author));
  await store.scheduledPosts.published(post);
  return message;
}
