/** Public names of chats in the parameters of a bot's call: each becomes the id of its chat before the method runs. */
import { fail } from '../errors.js';
import type { Store } from '../store/store.js';

const fields = ['chat_id', 'from_chat_id'] as const;
type Named = { readonly [K in (typeof fields)[number]]?: unknown };

/** Whether a chat is named by `@username`; a call that gives ids pays for nothing more. */
export function namesChat(params: unknown): boolean {
  const { chat_id, from_chat_id } = params as Named;
  return typeof chat_id === 'string' || typeof from_chat_id === 'string';
}

/** The same parameters with ids. Error: `chat_not_found` for a name that no public chat has. */
export async function withChatIds(store: Store, params: unknown): Promise<object> {
  const given = params as Named;
  const resolved = await Promise.all(
    fields.map(async (field) => {
      const value = given[field];
      if (typeof value !== 'string') return {};
      const chat = await store.chats.findByUsername(value.replace(/^@/, ''));
      return { [field]: (chat ?? fail('chat_not_found')).id };
    }),
  );
  return Object.assign({}, given, ...resolved);
}
