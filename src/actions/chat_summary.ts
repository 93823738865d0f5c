/** Builds a chat's entry in a person's chat list. */

import { kindOf, titleOf } from '../content/kinds.js';
import type { Files } from '../files/files.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { isPermitted } from '../rules/permissions.js';
import { hasRight } from '../rules/rights.js';
import type { StoredPicture } from '../store/bots/pictures.js';
import type { ChatState } from '../store/chats/chats.js';
import type { MutedChats } from '../store/chats/mutes.js';
import { type ChatPlaces, isArchived, pinOf } from '../store/chats/places.js';
import { messageKinds } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { Store } from '../store/store.js';
import type { Time } from '../time.js';
import { type Viewer, viewMessage } from '../view/messages.js';
import { otherPerson, viewChat, viewStranger } from '../view/users.js';
import { serviceNames } from '../wire/results.js';
import { viewPicture } from './pictures.js';
import { personViewer } from './reading.js';

function shortText(text: string): string {
  const max = limits.preview_text_length_max;
  if (text.length <= max) return text;
  // Splitting a long text into characters is slow. The text is therefore shortened before it is split. A character has
  // at most two UTF-16 code units, so enough characters remain.
  const characters = [...text.slice(0, 2 * max + 2)];
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join('')}…`;
}

/** Leaves token placeholders unfilled, because a chat list must not show tokens. */
function preview(message: StoredMessage, viewer: Viewer, time: Time): Readonly<Record<string, unknown>> {
  const { content, kind, origin } = message.record;
  const { from, text, caption, new_chat_title } = viewMessage(message, viewer, time);
  const words = text ?? caption ?? new_chat_title;
  const title = titleOf(content);
  const change = origin.service && Object.keys(origin.service)[0];
  const service = serviceNames.find((name) => name === change) ?? 'service';
  const member = origin.service?.new_chat_members?.[0] ?? origin.service?.left_chat_member;
  return {
    message_id: message.id,
    date: message.record.date,
    kind: kind !== messageKinds.service ? kindOf(content) : change === 'pinned' ? 'pinned_message' : service,
    ...(from === undefined ? {} : { from }),
    ...(member === undefined ? {} : { member: viewStranger(member) }),
    ...(typeof words === 'string' ? { text: shortText(words) } : {}),
    ...(title ? { file_name: shortText(title) } : {}),
  };
}

/**
 * Returns the avatar of the bot or of the other person in a chat of two, otherwise the photo of the group or channel.
 * The result is empty if there is no picture.
 */
async function pictureOf(
  store: Store,
  { chat, profile }: ChatState,
  user: User,
): Promise<readonly StoredPicture[]> {
  const other = otherPerson(profile, user.id);
  if (other !== null) return (await store.users.find(other.id))?.avatar ?? [];
  if (!isDirect(chat)) return (await store.chats.details(chat)).photo;
  return (await store.bots.descriptions(chat.id)).pictures.avatar ?? [];
}

/**
 * Returns the actions that the person may perform in the chat. `can_post` is set only for channels, because every
 * member may write in all other chats. `can_delete` is the right to delete other people's messages in a group or
 * channel.
 */
async function mayDo(store: Store, chat: ChatRef, type: string | undefined, user: User) {
  if (isDirect(chat) || type === 'person') return { can_pin: true };
  const [own, { permissions }] = await Promise.all([
    store.chats.member(chat, user.id),
    store.chats.details(chat),
  ]);
  // Channels have no separate right for pins (interface §5.11).
  const mayPin =
    type === 'channel'
      ? hasRight(own, 'can_edit_messages')
      : isPermitted(own, permissions, 'can_pin_messages');
  return {
    ...(type === 'channel' && hasRight(own, 'can_post_messages') ? { can_post: true } : {}),
    ...(mayPin ? { can_pin: true } : {}),
    ...(hasRight(own, 'can_delete_messages') ? { can_delete: true } : {}),
  };
}

/**
 * Returns why the person cannot write in a chat of two people. The field is `blocked` if this person blocked the other
 * person, and `closed` otherwise. Returns no field for any other chat.
 */
async function closedState(store: Store, { kind, profile }: ChatState, user: User) {
  const other = kind === 'closed' ? otherPerson(profile, user.id) : null;
  if (other === null) return {};
  return (await store.people.hasBlocked(user.id, other.id)) ? { blocked: true } : { closed: true };
}

/**
 * Returns the mute fields of a chat. If the chat is not muted, `until` is undefined and the result is empty. If the
 * chat is muted forever, `until` is null and the result has no end time.
 */
export const viewMute = (until: number | null | undefined) =>
  until === undefined ? {} : { muted: true, ...(until === null ? {} : { muted_until: until }) };

/**
 * Returns the field that marks a chat as pinned in the person's list or as archived. If the chat is neither, returns no
 * field.
 */
export function viewPlace(places: ChatPlaces, chat: ChatRef, newest: number) {
  const pin = pinOf(places, chat);
  if (pin > 0) return { list_pin: pin };
  return isArchived(places, chat, newest) ? { archived: true } : {};
}

/** A person's chat settings. The keys are chat ids as the person sees them. */
export interface ChatSettings {
  /** The read positions by chat. Null omits the read fields of all chats. */
  readonly marks: ReadonlyMap<number, number> | null;
  readonly muted: MutedChats;
  readonly places: ChatPlaces;
}

/**
 * Builds a chat's entry in a person's chat list, with the chat's picture and previews of its last and pinned messages.
 * Returns null if the chat does not exist. If the chat has no messages, the date of the entry is `joined`.
 */
export async function chatSummary(
  { store, files }: { readonly store: Store; readonly files: Files },
  chat: ChatRef,
  user: User,
  { marks, muted, places }: ChatSettings,
  joined?: number,
): Promise<Readonly<Record<string, unknown>> | null> {
  const found = await store.chats.find(chat);
  if (!found) return null;
  const [messages, viewer, pinned, picture] = await Promise.all([
    found.newest === 0 ? [] : store.history.list(chat, 0, 1),
    personViewer(store, chat, user),
    store.history.pinned(found),
    pictureOf(store, found, user),
  ]);
  if (messages === null) return null;
  const last = messages[0];
  const mark = marks?.get(chat.id) ?? 0;
  const isUnread = marks !== null && last !== undefined && last.id > mark && last.record.sender !== user.id;
  const count = isUnread ? await store.activity.countUnread(chat, last.id, mark, user.id) : 0;
  return {
    ...viewChat(isDirect(chat) && viewer.bot ? viewer.bot : found.profile, user.id),
    ...(await closedState(store, found, user)),
    ...(picture.length > 0 ? { avatar: viewPicture(files, picture) } : {}),
    ...(found.profile.m === undefined ? {} : { member_count: found.profile.m }),
    ...(last
      ? { last_message: preview(last, viewer, store.time) }
      : { joined_at: joined ?? (await store.activity.joined(user.id, chat)) }),
    ...(pinned ? { pinned_message: preview(pinned, viewer, store.time) } : {}),
    ...(await mayDo(store, chat, found.profile.t, user)),
    ...(count > 0 ? { unread_count: count, read_message_id: mark } : {}),
    ...viewMute(muted.get(chat.id)),
    ...viewPlace(places, chat, found.newest),
  };
}
