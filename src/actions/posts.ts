/** Builds posts for people and bots (interface §2, behaviour §8). */
import { z } from 'zod';
import { kindOf } from '../content/kinds.js';
import { fail } from '../errors.js';
import { heart } from '../rules/emoji.js';
import { isInChat } from '../rules/rights.js';
import { Flat } from '../server/endpoint.js';
import { messageKinds } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import type { ChatRef } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { PostState } from '../store/posts/posts.js';
import type { Store } from '../store/store.js';
import { viewMessage } from '../view/messages.js';
import { viewChat, viewStranger } from '../view/users.js';
import { answer, optional } from '../wire/schema.js';
import { withResults } from './polls.js';

export const postName = z.string({ error: answer('post_not_found') });

export const postFields = {
  post_id: optional(z.preprocess((id) => (typeof id === 'number' ? String(id) : id), postName)),
  external_id: optional(postName),
};

export const botPostName = (given: {
  readonly post_id?: string | undefined;
  readonly external_id?: string | undefined;
}): string => given.post_id ?? given.external_id ?? fail('parameter_required', { name: 'post_id' });

/** Returns the id of a post that a call names by id or external id. Error: `post_not_found`. */
export const postOf = (store: Store, name: string): number =>
  store.postIds.parse(name) ?? fail('post_not_found');

/** The viewer of a post: a person, or null for a bot. Only people see external ids. */
export type PostViewer = User | null;

/**
 * Builds the list of all reactions on a post. For each emoji, lists the most recent users up to a limit. If the viewer
 * reacted, the viewer comes first.
 */
export function viewReactions({ reactions, own }: PostState, viewer: PostViewer): readonly object[] {
  return reactions.map(({ emoji, count, users, listed }) => {
    const self = viewer !== null && own.includes(emoji) ? viewer.externalId : null;
    // If the viewer is already first, the order stays the same.
    const inOrder = self === null || users[0] === self;
    const user_ids = inOrder ? users : [self, ...users.filter((user) => user !== self)].slice(0, listed);
    return count > listed ? { emoji, count, user_ids, user_ids_truncated: true } : { emoji, count, user_ids };
  });
}

/**
 * Builds the answer of the reactions endpoints. The fields are next to `ok`, not inside `result` (interface §2).
 */
export const reactionPayload = (state: PostState, user: User): Flat =>
  new Flat({ reactions: viewReactions(state, user), my_reactions: state.own });

/** The fields that a post and its message have in common. */
const sameFields = [
  'edit_date',
  'text',
  'caption',
  'entities',
  'media_group_id',
  'has_media_spoiler',
  'show_caption_above_media',
  'reply_markup',
];

export function viewPost(store: Store, message: StoredMessage, state: PostState, viewer: PostViewer): object {
  const view = viewMessage(message, { isBot: viewer === null, bot: null }, store.time);
  const { content, origin } = message.record;
  const { from } = origin;
  const shown: Record<string, unknown> = {
    id: state.post,
    external_id: store.postIds.nameOf(state.post),
    chat: viewChat(message.peer),
    message_id: message.id,
    author: from && viewStranger(from),
    date: view.date,
  };
  for (const name of sameFields) if (view[name] !== undefined) shown[name] = view[name];
  if (view.caption_entities !== undefined) shown.entities = view.caption_entities;
  const type = kindOf(content);
  // Puts a poll into `media.poll`, because the poll's own field `type` would collide with `media.type`.
  if (type === 'poll') shown.media = { type, poll: view.poll };
  else if (type !== 'text') shown.media = { ...([view[type]].flat()[0] as object), type };
  shown.reactions = viewReactions(state, viewer);
  shown.liked_by_me = viewer !== null && state.own.includes(heart);
  return shown;
}

export async function postMessage(store: Store, state: PostState): Promise<StoredMessage> {
  const [message] = (await store.history.list(state.chat, state.messageId + 1, 1)) ?? [];
  return message?.id === state.messageId && message.record.kind !== messageKinds.deleted
    ? message
    : fail('post_not_found');
}

export async function findPost(
  store: Store,
  name: string,
  who: { readonly id: number; readonly isBot: boolean },
  viewer: PostViewer,
): Promise<object> {
  const state = await store.posts.find(postOf(store, name), who);
  const message = await postMessage(store, state);
  const [shown = message] = await withResults(store, who, [message]);
  return viewPost(store, shown, state, viewer);
}

/**
 * Returns a channel whose posts the person may see: a public channel, or one that the person joined. Error:
 * `unknown_chat`.
 */
export async function visibleChannel(store: Store, user: User, chat: ChatRef): Promise<ChatRef> {
  const found = await store.chats.find(chat);
  if (found?.kind === 'channel') return chat;
  if (found?.kind !== 'private') return fail('unknown_chat');
  const { status } = await store.chats.member(chat, user.id);
  return isInChat(status) ? chat : fail('unknown_chat');
}
