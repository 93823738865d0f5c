/** Finds the person that a call names by username or id. */
import { fail } from '../errors.js';
import type { User } from '../store/core/control.js';
import type { ChatRef } from '../store/core/keys.js';
import type { Store } from '../store/store.js';

export interface NamedPerson {
  readonly person: User;
  /** The chat of the two people, or null if the chat was never opened. */
  readonly chat: ChatRef | null;
  /** True if the two people share no chat at all. */
  readonly isStranger: boolean;
}

/**
 * Returns a person other than the caller. A username finds any person. An id finds only people who share a chat with
 * the caller or whom the caller blocked. Otherwise callers could try ids to find out which accounts exist. Errors:
 * `user_not_found`, `too_many_requests`.
 */
export async function namedPerson(store: Store, user: User, name: string): Promise<NamedPerson> {
  const byId = /^\d{1,13}$/.test(name);
  const person = await (byId ? store.users.find(Number(name)) : store.users.findByUsername(name));
  if (person === null || person.id === user.id) return fail('user_not_found');
  const chat = await store.people.find(user.id, person.id);
  if (chat !== null) return { person, chat, isStranger: false };
  const isStranger = !(await store.chats.acquaintances(user.id, null, [person.id])).has(person.id);
  const isHidden = byId && isStranger && !(await store.people.hasBlocked(user.id, person.id));
  return isHidden ? fail('user_not_found') : { person, chat, isStranger };
}
