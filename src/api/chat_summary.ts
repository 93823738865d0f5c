/** A chat as a list of chats shows it. */
import type { Files } from '../files/files.js';
import { limits } from '../limits.js';
import { rightsOf } from '../rules/rights.js';
import type { MutedChats } from '../store/chats/mutes.js';
import type { User } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { Store } from '../store/store.js';
import { viewMessage } from '../view/messages.js';
import { viewChat } from '../view/users.js';
import { viewPicture } from './pictures.js';
import { personViewer } from './reading.js';
import { withOwnTokens } from './shown_tokens.js';

/** Messages of others after the last read one, counted up to `limits.unread_counted_max`. */
async function unread(
  store: Store,
  chat: ChatRef,
  user: User,
  last: StoredMessage,
  mark: number,
): Promise<number> {
  if (last.id <= mark || last.record.sender === user.id) return 0;
  const limit = Math.min(limits.unread_counted_max, last.id - mark);
  const messages = (await store.history.list(chat, 0, limit)) ?? [];
  return messages.filter(({ id, record }) => id > mark && record.sender !== user.id).length;
}

/** In a channel some write; elsewhere everybody does, and nothing is told of it. */
async function mayPost(store: Store, chat: ChatRef, type: string | undefined, user: User): Promise<boolean> {
  if (type !== 'channel') return false;
  const { status, rights } = await store.chats.member(chat, user.id);
  return rightsOf(status, rights).can_post_messages === true;
}

/** `undefined` for a chat that is not muted, null for one that is for ever. */
export const viewMute = (until: number | null | undefined) =>
  until === undefined ? {} : { muted: true, ...(until === null ? {} : { muted_until: until }) };

/**
 * The chat with its last and its pinned message, of a direct chat with the avatar of the bot, as the person sees it; null when there is
 * no such chat. `marks` tell how far the person has read; without them nothing is told of that. `muted`: which chats they muted.
 */
export async function chatSummary(
  { store, files }: { readonly store: Store; readonly files: Files },
  chat: ChatRef,
  user: User,
  marks: ReadonlyMap<number, number> | null,
  muted: MutedChats,
): Promise<Readonly<Record<string, unknown>> | null> {
  const [messages, viewer, found, described] = await Promise.all([
    store.history.list(chat, 0, 1),
    personViewer(store, chat, user),
    store.chats.find(chat),
    isDirect(chat) ? store.bots.descriptions(chat.id) : null,
  ]);
  if (!found || messages === null) return null;
  const pinned = await store.history.pinned(found);
  const shown = await withOwnTokens(store, user, [...messages.slice(0, 1), ...(pinned ? [pinned] : [])]);
  const [last, pin] = messages.length === 0 ? [undefined, shown[0]] : shown;
  const count =
    messages[0] && marks ? await unread(store, chat, user, messages[0], marks.get(chat.id) ?? 0) : 0;
  return {
    ...viewChat(isDirect(chat) && viewer.bot ? viewer.bot : found.profile),
    ...(described?.pictures.avatar ? { avatar: viewPicture(files, described.pictures.avatar) } : {}),
    ...(found.profile.m === undefined ? {} : { member_count: found.profile.m }),
    ...(last ? { last_message: viewMessage(last, viewer) } : {}),
    ...(pin ? { pinned_message: viewMessage(pin, viewer) } : {}),
    ...((await mayPost(store, chat, found.profile.t, user)) ? { can_post: true } : {}),
    ...(count > 0 ? { unread_count: count } : {}),
    ...viewMute(muted.get(chat.id)),
  };
}
