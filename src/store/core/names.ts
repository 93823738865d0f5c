/** Resolves usernames of public chats, with a copy in Redis in a partition chosen by the name. */

import { findName } from '../../postgres/accounts/users.js';
import { loadChat } from '../../postgres/chats/chats.js';
import { usernameKey } from '../../rules/usernames.js';
import type { StoreContext } from './context.js';
import { type ChatRef, sharedChat } from './keys.js';
import { createTextCopies, type TextRow } from './text_copies.js';

export interface Names {
  /**
   * Finds the public group or channel with this username, given without `@`. Must be fast, because bots' calls wait
   * for it.
   */
  find(username: string): Promise<ChatRef | null>;
  /** Copies the username of a chat to Redis. */
  refresh(chat: number): Promise<void>;
}

export function createNames(context: StoreContext): Names {
  const { db, keys } = context;

  /** Loads the chat of a name. Unused names, and names of people or bots, resolve to nothing. */
  async function load(name: string): Promise<TextRow> {
    const id = await findName(db, name);
    const chat = id !== null && id < 0 ? await loadChat(db, id) : null;
    return chat && !chat.private ? { version: chat.version, id: chat.id } : { version: 0, id: 0 };
  }

  const copies = createTextCopies(context, keys.name, load);
  return {
    async find(username) {
      const id = await copies.read(usernameKey(username));
      return id ? sharedChat(id) : null;
    },
    async refresh(chat) {
      const row = await loadChat(db, chat);
      if (row?.username) await copies.refresh(usernameKey(row.username));
    },
  };
}
