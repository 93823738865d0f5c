/** Builds messages in the wire format. */
import { viewContent } from '../content/kinds.js';
import type { Entity, ForwardOrigin, MessageRecord, Profile, Service } from '../store/core/codec.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { Time } from '../time.js';
import { viewChat, viewPerson, viewStranger, viewUser } from './users.js';

/**
 * The bot or person for whom a message is built. In a direct chat, a bot sees the person's name as the name of the
 * chat, and the person sees the bot's name.
 */
export interface Viewer {
  readonly isBot: boolean;
  readonly bot: Profile | null;
  /** The viewer's id in the application API. Absent if the viewer is a bot. */
  readonly person?: number;
}

const protectedFlag = 1;
const serviceKind = 2;

export type MessageView = Readonly<Record<string, unknown>>;

/** Returns the fields that describe a forward, including those that older libraries expect (behaviour §6). */
function viewForward({ from, chat, message, date }: ForwardOrigin): MessageView {
  if (chat === undefined) {
    const sender = from && viewStranger(from);
    return {
      forward_origin: { type: 'user', sender_user: sender, date },
      forward_from: sender,
      forward_date: date,
    };
  }
  return {
    forward_origin: { type: 'channel', chat: viewChat(chat), message_id: message, date },
    forward_from_chat: viewChat(chat),
    forward_from_message_id: message,
    forward_date: date,
  };
}

function viewMembers({ new_chat_members: came, left_chat_member: gone }: Service): MessageView {
  if (came !== undefined) return { new_chat_members: came.map(viewStranger) };
  return gone === undefined ? {} : { left_chat_member: viewStranger(gone) };
}

function viewService(message: StoredMessage, viewer: Viewer, time: Time): MessageView {
  const { pinned, ...service } = message.record.origin.service ?? {};
  if (pinned === undefined) return { ...service, ...viewMembers(service) };
  const { reply } = message;
  const { chat } = viewRecord(message, message.id, message.record, viewer, time);
  // The date 0 tells clients that the pinned message was deleted.
  const gone = { message_id: pinned, chat, date: 0 };
  return {
    ...service,
    pinned_message: reply ? viewRecord(message, reply.id, reply.record, viewer, time) : gone,
  };
}

export const viewEntities = (entities: readonly Entity[] | undefined) =>
  entities?.map((entity) => {
    // Shows a bot token as `code`, so that viewers can copy it.
    if (entity.type === 'bot_token') return { type: 'code', offset: entity.offset, length: entity.length };
    const mentioned = entity.user as Profile | undefined;
    return mentioned && mentioned.n !== undefined ? { ...entity, user: viewStranger(mentioned) } : entity;
  });

function viewRecord(
  message: StoredMessage,
  id: number,
  record: MessageRecord,
  viewer: Viewer,
  time: Time,
): Record<string, unknown> {
  const { chat, peer } = message;
  const direct = chat.user !== 0;
  const bot = viewer.bot ?? { id: chat.id, bot: 1 as const, n: '' };
  const from = direct ? (record.sender === chat.id ? bot : peer) : record.origin.from;
  const other = direct && !viewer.isBot ? bot : peer;
  const user = viewer.isBot ? viewUser : viewPerson;
  const { content, markup } = record;
  const entities = viewEntities(content.entities);
  const view: Record<string, unknown> = { message_id: id };
  if (from !== undefined) view.from = user(from);
  if (peer.t === 'channel') view.sender_chat = viewChat(peer);
  view.chat = viewChat(other, viewer.person);
  view.date = record.date;
  if (record.origin.via !== undefined) view.via_bot = viewStranger(record.origin.via);
  if (record.origin.forward) Object.assign(view, viewForward(record.origin.forward));
  if (record.editedAt !== 0) view.edit_date = Math.floor(record.editedAt / 1000);
  if ((record.flags & protectedFlag) !== 0) view.has_protected_content = true;
  if (record.origin.group !== undefined) view.media_group_id = record.origin.group;
  Object.assign(view, viewContent(content, !viewer.isBot, time, viewer.bot?.id));
  if (content.media?.spoiler) view.has_media_spoiler = true;
  const [words, marks] = content.media === undefined ? ['text', 'entities'] : ['caption', 'caption_entities'];
  if (content.above) view.show_caption_above_media = true;
  if (content.text !== undefined) view[words] = content.text;
  if (entities !== undefined && entities.length > 0) view[marks] = entities;
  if (content.preview !== undefined) view.link_preview_options = content.preview;
  if (markup !== null) view.reply_markup = markup;
  return view;
}

/**
 * Builds a `Message`. A reply contains the replied-to message, and a service message about a pin contains the pinned
 * message. These inner messages contain no other messages (interface §2).
 */
export function viewMessage(message: StoredMessage, viewer: Viewer, time: Time): MessageView {
  const view = viewRecord(message, message.id, message.record, viewer, time);
  const { keyboard } = message.record.origin;
  if (keyboard !== undefined && !viewer.isBot) view.reply_keyboard = keyboard;
  if (message.record.kind === serviceKind) Object.assign(view, viewService(message, viewer, time));
  else if (message.reply)
    view.reply_to_message = viewRecord(message, message.reply.id, message.reply.record, viewer, time);
  return view;
}
