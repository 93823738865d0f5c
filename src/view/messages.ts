/** Messages as the wire shows them. */
import type { MessageRecord, Profile } from '../store/codec.js';
import type { StoredMessage } from '../store/stored_message.js';
import { viewChat, viewPerson, viewUser } from './users.js';

/** Who looks: each side of a direct chat names it by the other side. */
export interface Viewer {
  readonly isBot: boolean;
  /** the bot of a direct chat; not needed for groups and channels */
  readonly bot: Profile | null;
}

const protectedFlag = 1;

export type MessageView = Readonly<Record<string, unknown>>;

function viewRecord(message: StoredMessage, id: number, record: MessageRecord, viewer: Viewer): MessageView {
  const { chat, peer } = message;
  const direct = chat.user !== 0;
  const bot = viewer.bot ?? { id: chat.id, bot: 1 as const, n: '' };
  const from = direct ? (record.sender === chat.id ? bot : peer) : record.origin.from;
  const other = direct && !viewer.isBot ? bot : peer;
  const user = viewer.isBot ? viewUser : viewPerson;
  const { content, markup } = record;
  const entities = content.entities?.map((entity) => {
    const mentioned = entity.user as Profile | undefined;
    return mentioned && mentioned.n !== undefined ? { ...entity, user: user(mentioned) } : entity;
  });
  const view: Record<string, unknown> = { message_id: id };
  if (from !== undefined) view.from = user(from);
  view.chat = viewChat(other);
  view.date = record.date;
  if (record.editedAt !== 0) view.edit_date = Math.floor(record.editedAt / 1000);
  if ((record.flags & protectedFlag) !== 0) view.has_protected_content = true;
  if (content.text !== undefined) view.text = content.text;
  if (entities !== undefined && entities.length > 0) view.entities = entities;
  if (markup !== null) view.reply_markup = markup;
  return view;
}

/** A Message (interface §2). A replied message is shown one level deep. */
export function viewMessage(message: StoredMessage, viewer: Viewer): MessageView {
  const view = viewRecord(message, message.id, message.record, viewer);
  if (!message.reply) return view;
  return { ...view, reply_to_message: viewRecord(message, message.reply.id, message.reply.record, viewer) };
}
