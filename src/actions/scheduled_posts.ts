/** Schedules posts of people in channels, and publishes them (decision 0087). */
import { ApiError, type ErrorName, fail } from '../errors.js';
import type { EntityInput } from '../rules/entities/format.js';
import type { Content, Profile } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import type { ChatRef } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import { storeLimits as limits } from '../store/limits.js';
import type { NewMessage } from '../store/messages/messages.js';
import type { ClaimedPost, ScheduledPost } from '../store/posts/scheduled_posts.js';
import type { Store } from '../store/store.js';
import { viewEntities } from '../view/messages.js';
import { textContent, userSender } from './compose.js';

/** Returns the content of a post. Errors: those of `textContent`. */
export const scheduledContent = async (
  store: Store,
  author: number,
  chat: ChatRef,
  text: string,
  entities: readonly EntityInput[] | undefined,
): Promise<Content> => textContent(store, { id: author, isBot: false, chat }, { text, entities });

/** Checks the time of a post, in Unix seconds. Error: `schedule_time_wrong`. */
export function checkTime(store: Store, at: number): number {
  const aheadMs = at * 1_000 - store.time.now();
  const isValid = aheadMs >= limits.schedule_ahead_ms_min && aheadMs <= limits.schedule_ahead_ms_max;
  return isValid ? at : fail('schedule_time_wrong');
}

export function viewScheduled({ id, chat, content, publishAt, failure }: ScheduledPost) {
  const entities = viewEntities(content.entities);
  return {
    id,
    chat_id: chat.id,
    text: content.text ?? '',
    ...(entities === undefined ? {} : { entities }),
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
  // An earlier attempt may have sent the post before these checks began to fail.
  const messageOf = async (): Promise<NewMessage> => {
    if (author.state === 'suspended') return fail('posting_not_allowed');
    const { text = '', entities } = post.content;
    const input = entities?.map(inputOf);
    const content = await scheduledContent(store, author.id, post.chat, text, input);
    return { content, markup: null, flags: 0, replyTo: 0, allowMissingReply: false };
  };
  return store.under(post.seed, true).messages.send(post.chat, userSender(author), messageOf);
}

/** After these errors, the post is tried again when its claim ends. */
const passing: ReadonlySet<ErrorName> = new Set<ErrorName>(['unavailable', 'too_many_requests', 'internal']);

export const isFinal = (error: unknown): error is ApiError =>
  error instanceof ApiError && !passing.has(error.kind);

/**
 * Publishes a claimed post and removes it from the scheduled posts. If a process dies in between, the next attempt finds
 * the sent message by its request id. Errors: those of `send`, `publication_unknown` if the request id may be forgotten.
 */
export async function publishClaimed(store: Store, post: ClaimedPost): Promise<StoredMessage> {
  if (post.isUnknown) fail('publication_unknown');
  const message = await send(store, post, await store.users.find(post.author));
  await store.scheduledPosts.published(post);
  return message;
}
