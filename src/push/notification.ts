/** Builds the notification of a message from its sender and the start of its text. */
import { signOf } from '../content/kinds.js';
import { cut, withoutSpoilers } from '../rules/shown_text.js';
import type { MessageRecord, Profile } from '../store/core/codec.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import { pushLimits as limits } from './limits.js';

/** The payload that the service worker in `web/client` receives. */
export interface Notification {
  readonly chat_id: number;
  readonly message_id: number;
  readonly title: string;
  readonly body: string;
  /** The Unix time in seconds at which the message was sent. */
  readonly date: number;
}

function wordsOf({ content, origin }: MessageRecord): string {
  const text = withoutSpoilers(content.text ?? '', content.entities);
  return signOf(content, text) || text || (origin.forward ? '↪' : '');
}

const nameOf = ({ n, l }: Profile): string => (l === undefined ? n : `${n} ${l}`);

/**
 * Builds a notification. Returns null for a message that needs no notification or has no text. In a direct chat, `bot`
 * is the bot's profile in the person's language.
 */
export function notificationOf(
  chat: ChatRef,
  { id, record, peer, reply }: StoredMessage,
  bot: Profile | null,
): Notification | null {
  const { service } = record.origin;
  const pinned = service?.pinned !== undefined;
  if (service && !pinned) return null;
  const words = pinned ? `📌 ${reply ? wordsOf(reply.record) : ''}`.trim() : wordsOf(record);
  if (words === '') return null;
  const from = peer.t === 'group' && record.origin.from ? `${nameOf(record.origin.from)}: ` : '';
  const other = isDirect(chat) ? bot : peer.t === 'person' ? record.origin.from : undefined;
  const title = other === undefined ? peer.n : nameOf(other ?? { id: chat.id, n: '' });
  return {
    ...{ chat_id: chat.id, message_id: id, date: record.date },
    title: cut(title, limits.push_title_length_max),
    body: cut(from + words, limits.push_text_length_max),
  };
}
