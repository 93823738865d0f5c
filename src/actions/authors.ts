/** Looks up the current names and avatars of the people who wrote a group's messages. */
import { isInChat } from '../rules/rights.js';
import type { EndpointContext } from '../server/endpoint.js';
import { userProfile } from '../store/chats/chats.js';
import type { User } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import { viewStranger } from '../view/users.js';
import { viewAvatar } from './pictures.js';

/**
 * Returns the field `authors` for a page of messages in a group. Returns no field for other chats, which show who wrote
 * each message without this field. Leaves out people who have left the group, because the members need not know their
 * new names. Reads two records per author, but none for the reader, so the caller must limit the number of messages.
 * The reader must be in the group.
 */
export async function viewAuthors(
  { user, store, files }: Pick<EndpointContext<User>, 'user' | 'store' | 'files'>,
  chat: ChatRef,
  messages: readonly StoredMessage[],
) {
  if (isDirect(chat) || messages[0]?.peer.t !== 'group') return {};
  const ids = new Set<number>();
  for (const { record } of messages)
    if (record.origin.from !== undefined && record.origin.from.bot !== 1) ids.add(record.origin.from.id);
  const view = (person: User) => ({ user: viewStranger(userProfile(person)), ...viewAvatar(files, person) });
  const found = await Promise.all(
    [...ids].map(async (id) => {
      if (id === user.id) return [view(user)];
      const [{ status }, person] = await Promise.all([store.chats.member(chat, id), store.users.find(id)]);
      return person !== null && isInChat(status) ? [view(person)] : [];
    }),
  );
  const authors = found.flat();
  return authors.length > 0 ? { authors } : {};
}
