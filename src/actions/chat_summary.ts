/** Builds a chat's entry in a person's chat list. */
import { kindOf, titleOf } from '../content/kinds.js';
import type { Files } from '../files/files.js';
import { limits } from '../limits.js';
import { rightsOf } from '../rules/rights.js';
import type { MutedChats } from '../store/chats/mutes.js';
import { messageKinds } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { Store } from '../store/store.js';
import { type Viewer, viewMessage } from '../view/messages.js';
import { viewChat } from '../view/users.js';
import { viewPicture } from './pictures.js';
import { personViewer } from './reading.js';

/** The start of a text, cut to `limits.preview_text_length_max` characters. */
function shortText(text: string): string {
  const max = limits.preview_text_length_max;
  if (text.length <= max) return text;
  // A character has at most two code units.
  const characters = [...text.slice(0, 2 * max + 2)];
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join('')}…`;
}

/** The kind, first words and sender of a message. Token placeholders are not filled in: lists show no tokens. */
function preview(message: StoredMessage, viewer: Viewer): Readonly<Record<string, unknown>> {
  const { content, kind, origin } = message.record;
  const { from, text, caption } = viewMessage(message, viewer);
  const words = text ?? caption;
  const title = titleOf(content);
  const service = origin.service?.pinned === undefined ? 'service' : 'pinned_message';
  return {
    message_id: message.id,
    date: message.record.date,
    kind: kind === messageKinds.service ? service : kindOf(content),
    ...(from === undefined ? {} : { from }),
    ...(typeof words === 'string' ? { text: shortText(words) } : {}),
    ...(title ? { file_name: shortText(title) } : {}),
  };
}

/** Whether a person may post in a channel; false elsewhere, where every member may write and the field is omitted. */
async function mayPost(store: Store, chat: ChatRef, type: string | undefined, user: User): Promise<boolean> {
  if (type !== 'channel') return false;
  const { status, rights } = await store.chats.member(chat, user.id);
  return rightsOf(status, rights).can_post_messages === true;
}

/** The mute fields of a chat: none when `until` is undefined (not muted); no end when it is null (muted forever). */
export const viewMute = (until: number | null | undefined) =>
  until === undefined ? {} : { muted: true, ...(until === null ? {} : { muted_until: until }) };

/**
 * The chat as the person sees it, with previews of its last and pinned messages. A direct chat also has the bot's
 * avatar. Null when the chat does not exist. `marks` give the read position; without them the read fields are omitted.
 * `muted` holds the chats the person muted. `joined` is the joining time, used for chats without messages.
 */
export async function chatSummary(
  { store, files }: { readonly store: Store; readonly files: Files },
  chat: ChatRef,
  user: User,
  marks: ReadonlyMap<number, number> | null,
  muted: MutedChats,
  joined?: number,
): Promise<Readonly<Record<string, unknown>> | null> {
  const found = await store.chats.find(chat);
  if (!found) return null;
  const [messages, viewer, pinned, described] = await Promise.all([
    found.newest === 0 ? [] : store.history.list(chat, 0, 1),
    personViewer(store, chat, user),
    store.history.pinned(found),
    isDirect(chat) ? store.bots.descriptions(chat.id) : null,
  ]);
  if (messages === null) return null;
  const last = messages[0];
  const mark = marks?.get(chat.id) ?? 0;
  const isUnread = marks !== null && last !== undefined && last.id > mark && last.record.sender !== user.id;
  const count = isUnread ? await store.activity.countUnread(chat, last.id, mark, user.id) : 0;
  return {
    ...viewChat(isDirect(chat) && viewer.bot ? viewer.bot : found.profile),
    ...(described?.pictures.avatar ? { avatar: viewPicture(files, described.pictures.avatar) } : {}),
    ...(found.profile.m === undefined ? {} : { member_count: found.profile.m }),
    ...(last
      ? { last_message: preview(last, viewer) }
      : { joined_at: joined ?? (await store.activity.joined(user.id, chat)) }),
    ...(pinned ? { pinned_message: preview(pinned, viewer) } : {}),
    ...((await mayPost(store, chat, found.profile.t, user)) ? { can_post: true } : {}),
    ...(count > 0 ? { unread_count: count } : {}),
    ...viewMute(muted.get(chat.id)),
  };
}
