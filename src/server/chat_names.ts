/** Replaces `@username` in a bot call's chat parameters with the chat's id, before the method runs. */
import { fail } from '../errors.js';
import type { Store } from '../store/store.js';
import type { Method } from './method.js';

type Given = Readonly<Record<string, unknown>>;

export function namesChat({ chatParams }: Method, params: unknown): boolean {
  for (const name of chatParams) if (typeof (params as Given)[name] === 'string') return true;
  return false;
}

/**
 * Returns a call's parameters with chat ids in place of usernames. Throws `chat_not_found` if no public chat has the
 * username.
 */
export async function withChatIds({ chatParams }: Method, store: Store, params: unknown): Promise<object> {
  const given = params as Given;
  const resolved = await Promise.all(
    chatParams.map(async (name) => {
      const value = given[name];
      if (typeof value !== 'string') return {};
      const chat = await store.chats.findByUsername(value.replace(/^@/, ''));
      return { [name]: (chat ?? fail('chat_not_found')).id };
    }),
  );
  return Object.assign({}, given, ...resolved);
}
