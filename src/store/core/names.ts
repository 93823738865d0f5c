/**
 * Finds public chats by username. Redis has a copy of each username, in a partition that is computed from the username.
 */

import { findName } from '../../postgres/accounts/users.js';
import { loadChat } from '../../postgres/chats/chats.js';
import { usernameKey } from '../../rules/usernames.js';
import type { StoreContext } from './context.js';
import { type ChatRef, sharedChat } from './keys.js';
import { createTextCopies, type TextRow } from './text_copies.js';

export function createNames(context: StoreContext) {
  const { db, keys } = context;

  async function load(name: string): Promise<TextRow> {
    const id = await findName(db, name);
    const chat = id !== null && id < 0 ? await loadChat(db, id) : null;
    return chat && !chat.private ? { version: chat.version, id: chat.id } : { version: 0, id: 0 };
  }

  const copies = createTextCopies(context, keys.name, load);
  return {
    /**
     * Returns the public group or channel with this username (without `@`), or null if there is none. Must be fast,
     * because bots' calls wait for it.
     */
    async find(username: string): Promise<ChatRef | null> {
      const id = await copies.read(usernameKey(username));
      return id ? sharedChat(id) : null;
    },
    async refresh(chat: number) {
      const row = await loadChat(db, chat);
      if (row?.username) await copies.refresh(usernameKey(row.username));
    },
  };
}
