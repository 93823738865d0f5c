/** Posts as people and bots are shown them (interface §2, behaviour §8). */
import { z } from 'zod';
import { fail } from '../errors.js';
import { heart } from '../rules/emoji.js';
import { Flat } from '../server/endpoint.js';
import { isPresent } from '../store/chats/chats.js';
import { messageKinds } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import type { ChatRef } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { PostState } from '../store/posts/posts.js';
import type { Store } from '../store/store.js';
import { viewMedia } from '../view/media.js';
import { viewMessage } from '../view/messages.js';
import { viewChat, viewStranger } from '../view/users.js';
import { answer, optional } from '../wire/schema.js';

/** A post as a path names it: by its id or its external id. */
export const postName = z.string({ error: answer('post_not_found') });

/** A post as a bot names it. */
export const postFields = {
  post_id: optional(z.preprocess((id) => (typeof id === 'number' ? String(id) : id), postName)),
  external_id: optional(postName),
};

/** Error: `parameter_required` for `post_id`. */
export const botPostName = (given: {
  readonly post_id?: string | undefined;
  readonly external_id?: string | undefined;
}): string => given.post_id ?? given.external_id ?? fail('parameter_required', { name: 'post_id' });

/** The id of a post that a caller names. Error: `post_not_found`. */
export const postOf = (store: Store, name: string): number =>
  store.posts.parse(name) ?? fail('post_not_found');

/** Who looks: a person by external id, or a bot (null). */
export type PostViewer = User | null;

/** All reactions on a post; of an emoji's users the latest, as many as are listed, the one who asks first. */
export function viewReactions({ reactions, own }: PostState, viewer: PostViewer): readonly object[] {
  return reactions.map(({ emoji, count, users, listed }) => {
    const self = viewer !== null && own.includes(emoji) ? viewer.externalId : null;
    // Who has just set the emoji stands first already.
    const inOrder = self === null || users[0] === self;
    const user_ids = inOrder ? users : [self, ...users.filter((user) => user !== self)].slice(0, listed);
    return count > listed ? { emoji, count, user_ids, user_ids_truncated: true } : { emoji, count, user_ids };
  });
}

/** The payload of the reactions endpoints (interface §2): its fields stand beside `ok`. */
export const reactionPayload = (state: PostState, user: User): Flat =>
  new Flat({ reactions: viewReactions(state, user), my_reactions: state.own });

/** A Post. */
export function viewPost(store: Store, message: StoredMessage, state: PostState, viewer: PostViewer): object {
  const view = viewMessage(message, { isBot: viewer === null, bot: null });
  const { content, origin } = message.record;
  const { media } = content;
  const { from } = origin;
  const shown: Record<string, unknown> = {
    id: state.post,
    external_id: store.posts.nameOf(state.post),
    chat: viewChat(message.peer),
    message_id: message.id,
    author: from && viewStranger(from),
    date: view.date,
  };
  for (const name of ['edit_date', 'text', 'caption', 'entities', 'reply_markup']) {
    if (view[name] !== undefined) shown[name] = view[name];
  }
  if (view.caption_entities !== undefined) shown.entities = view.caption_entities;
  if (media !== undefined)
    shown.media = { type: media.type, ...([viewMedia(media, viewer !== null)].flat()[0] as object) };
  return {
    ...shown,
    reactions: viewReactions(state, viewer),
    liked_by_me: viewer !== null && state.own.includes(heart),
  };
}

/** The message that a post is. Error: `post_not_found`. */
export async function postMessage(store: Store, state: PostState): Promise<StoredMessage> {
  const [message] = (await store.history.list(state.chat, state.messageId + 1, 1)) ?? [];
  return message?.id === state.messageId && message.record.kind !== messageKinds.deleted
    ? message
    : fail('post_not_found');
}

/** A post with all that is shown of it, as `who` sees it. Error: `post_not_found`. */
export async function findPost(
  store: Store,
  name: string,
  who: { readonly id: number; readonly isBot: boolean },
  viewer: PostViewer,
): Promise<object> {
  const state = await store.posts.find(postOf(store, name), who);
  return viewPost(store, await postMessage(store, state), state, viewer);
}

/** A channel whose posts a person may see. Error: `unknown_chat`, for a private one that the person is not in as well. */
export async function visibleChannel(store: Store, user: User, chat: ChatRef): Promise<ChatRef> {
  const found = await store.chats.find(chat);
  if (found?.kind === 'channel') return chat;
  if (found?.kind !== 'private') return fail('unknown_chat');
  const { status } = await store.chats.member(chat, user.id);
  return isPresent(status) ? chat : fail('unknown_chat');
}
