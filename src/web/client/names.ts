/** Builds the display names of people, chats and messages. */
import { get } from './api.js';
import { Signal } from './signal.js';
import {
  type BotPage,
  type Chat,
  type ChatSummary,
  type MediaKind,
  type Message,
  type MessagePreview,
  type ObjectKind,
  type ServiceKind,
  serviceKinds,
  type User,
} from './types.js';
import { mediumName, mediumOf } from './view/media.js';
import { objectOf } from './view/objects.js';
import { t } from './words.js';

export const personName = (user: User | undefined): string =>
  user ? [user.first_name, user.last_name].filter(Boolean).join(' ') : t('somebody');

export const chatName = (chat: Chat): string => {
  const name = chat.title ?? [chat.first_name, chat.last_name].filter(Boolean).join(' ');
  return name === '' && chat.type === 'person' ? t('deleted_account') : name;
};

/**
 * Returns whether the person may write in the chat. In a direct chat, the bot can still refuse messages from the
 * person.
 */
export const mayWriteIn = ({ type, can_post, blocked, closed }: ChatSummary): boolean =>
  !blocked && !closed && (type !== 'channel' || can_post === true);

/** Returns the kind of a service message, or undefined for other messages. */
export const serviceKindOf = (message: Message): ServiceKind | undefined =>
  serviceKinds.find((kind) => message[kind] !== undefined);

/** Returns the text that a chat shows for a service message, or null for other messages. */
export function serviceText({ kind, from, member, text = '' }: MessagePreview): string | null {
  const [name, who] = [personName(from), personName(member)];
  const own = from?.id === member?.id;
  switch (kind as ServiceKind) {
    case 'pinned_message':
      return t('pinned_a_message', { name });
    case 'group_chat_created':
      return t('service_created', { name });
    case 'new_chat_members':
      return own ? t('service_joined', { name }) : t('service_added', { name, who });
    case 'left_chat_member':
      return own ? t('service_left', { name }) : t('service_removed', { name, who });
    case 'new_chat_title':
      return t('service_title', { name, text });
    case 'new_chat_photo':
      return t('service_photo', { name });
    case 'delete_chat_photo':
      return t('service_photo_removed', { name });
    default:
      return null;
  }
}

/** Returns the preview of a message for the list of chats. */
export function previewOf(message: Message): MessagePreview {
  const medium = mediumOf(message);
  const object = objectOf(message);
  const { message_id, date, from } = message;
  return {
    message_id,
    date,
    from,
    member: message.new_chat_members?.[0] ?? message.left_chat_member,
    kind: serviceKindOf(message) ?? medium?.kind ?? object?.kind ?? 'text',
    text: message.text ?? message.caption ?? message.new_chat_title,
    file_name: medium?.file.file_name ?? object?.title,
  };
}

/** Returns the text of a message's preview on one line. */
export function summaryOf(preview: MessagePreview): string {
  const { kind, text = '', file_name } = preview;
  const service = serviceText(preview);
  if (service !== null) return service;
  if (kind === 'text' || kind === 'service') return text || t('message');
  const medium = mediumName(kind as MediaKind | ObjectKind, file_name);
  return text === '' ? medium : `${medium} · ${text}`;
}

class Profiles extends Signal {
  readonly byName = new Map<string, BotPage | null>();
  readonly #asked = new Map<string, Promise<BotPage | null>>();

  /**
   * Returns the profile page of a bot, or null if the bot does not exist. If the page is not loaded yet, starts to load
   * it and returns undefined.
   */
  read(username: string | undefined): BotPage | null | undefined {
    if (!username) return null;
    if (!this.byName.has(username)) void this.load(username);
    return this.byName.get(username);
  }

  /**
   * Drops the loaded profile pages of all bots, for example when the language changes. Each page is loaded again when
   * it is needed.
   */
  forget(): void {
    this.byName.clear();
    this.#asked.clear();
    this.changed();
  }

  load(username: string, anew = false): Promise<BotPage | null> {
    const asked = this.#asked.get(username);
    if (asked && !anew) return asked;
    const asking = get<BotPage>(`/api/bots/${encodeURIComponent(username)}`)
      .catch(() => null)
      .then((page) => {
        this.byName.set(username, page);
        this.changed();
        return page;
      });
    this.#asked.set(username, asking);
    return asking;
  }
}

export const profiles = new Profiles();
