/** A chat as a list of chats shows it. */
import type { Files } from '../files/files.js';
import type { User } from '../store/control.js';
import { type ChatRef, isDirect } from '../store/keys.js';
import type { Store } from '../store/store.js';
import { viewMessage } from '../view/messages.js';
import { viewChat } from '../view/users.js';
import { viewPicture } from './pictures.js';
import { personViewer } from './reading.js';
import { withOwnTokens } from './shown_tokens.js';

/** The chat with its last and its pinned message, of a direct chat with the avatar of the bot, as the person sees it; null when there is no such chat. */
export async function chatSummary(
  { store, files }: { readonly store: Store; readonly files: Files },
  chat: ChatRef,
  user: User,
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
  return {
    ...viewChat(isDirect(chat) && viewer.bot ? viewer.bot : found.profile),
    ...(described?.pictures.avatar ? { avatar: viewPicture(files, described.pictures.avatar) } : {}),
    ...(found.profile.m === undefined ? {} : { member_count: found.profile.m }),
    ...(last ? { last_message: viewMessage(last, viewer) } : {}),
    ...(pin ? { pinned_message: viewMessage(pin, viewer) } : {}),
  };
}
