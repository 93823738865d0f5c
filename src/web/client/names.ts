/** Display names of people, chats and messages. */
import { get } from './api.js';
import { Signal } from './signal.js';
import type { BotPage, ChatRef, Message, Preview, User } from './types.js';
import { mediumName, mediumOf } from './view/media.js';
import { objectOf } from './view/objects.js';
import { t } from './words.js';

export const personName = (user: User | undefined): string =>
  user ? [user.first_name, user.last_name].filter(Boolean).join(' ') : t('somebody');

export const chatName = (chat: ChatRef): string =>
  chat.title ?? [chat.first_name, chat.last_name].filter(Boolean).join(' ') ?? '';

/** The preview of a message for the list of chats. */
export function previewOf(message: Message): Preview {
  const medium = mediumOf(message);
  const object = objectOf(message);
  const { message_id, date, from } = message;
  return {
    message_id,
    date,
    from,
    kind: message.pinned_message ? 'pinned_message' : (medium?.kind ?? object?.kind ?? 'text'),
    text: message.text ?? message.caption,
    file_name: medium?.file.file_name ?? object?.title,
  };
}

/** The preview of a message as one line of text. */
export function summaryOf({ kind, from, text = '', file_name }: Preview): string {
  if (kind === 'pinned_message') return t('pinned_a_message', { name: personName(from) });
  if (kind === 'text' || kind === 'service') return text || t('message');
  const medium = mediumName(kind, file_name);
  return text === '' ? medium : `${medium} · ${text}`;
}

class Profiles extends Signal {
  readonly byName = new Map<string, BotPage | null>();
  readonly #asked = new Map<string, Promise<BotPage | null>>();

  /** The page of a bot if it is loaded; requests it otherwise. Null if there is no such bot. */
  read(username: string | undefined): BotPage | null | undefined {
    if (!username) return null;
    if (!this.byName.has(username)) void this.load(username);
    return this.byName.get(username);
  }

  /** Drops all pages, for example because texts differ by language. They are loaded again when needed. */
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
