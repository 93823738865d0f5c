/** Searches the messages in the caller's chats (behaviour §11). */
import { z } from 'zod';
import { personViewer, readableChat } from '../../actions/reading.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { page } from '../../server/pages.js';
import { searching } from '../../server/searches.js';
import type { ActiveChat } from '../../store/chats/activity.js';
import type { User } from '../../store/core/control.js';
import type { ChatRef } from '../../store/core/keys.js';
import type { StoredMessage } from '../../store/core/stored_message.js';
import type { Store } from '../../store/store.js';
import { type Viewer, viewMessage } from '../../view/messages.js';
import { appChatId, numberCursor, pageSize, queryText, searchQuery } from '../../wire/fields.js';
import { messagePage } from '../../wire/results.js';
import { optional, text } from '../../wire/schema.js';

const query = searchQuery.describe(queryText('a message'));

const cursorError = 'a cursor of an earlier answer';
const cursor = optional(text.regex(/^\d{1,12}_-?\d{1,14}_\d{1,15}$/, { error: cursorError }));

const cursorOf = ({ date, chat }: ActiveChat, before: number) => `${date}_${chat.id}_${before}`;

/**
 * Returns a function that builds the views of found messages, without the messages that they reply to. Placeholders for
 * bot tokens stay in the texts, as in other lists.
 */
function viewsFor(store: Store, user: User) {
  const viewers = new Map<number, Promise<Viewer>>();
  const viewerOf = (chat: ChatRef) => {
    const viewer = viewers.get(chat.id) ?? personViewer(store, chat, user);
    viewers.set(chat.id, viewer);
    return viewer;
  };
  return (messages: readonly StoredMessage[]) =>
    Promise.all(messages.map(async (each) => viewMessage(each, await viewerOf(each.chat), store.time)));
}

export const searchChat = defineEndpoint({
  verb: 'GET',
  path: '/api/chats/{chat_id}/search',
  summary:
    'Searches the messages in a chat, newest first. A page can be empty although another page follows. The search finds a new message about a second after it was sent.',
  params: z.object({ chat_id: appChatId, query, cursor: numberCursor, limit: optional(pageSize) }),
  errors: ['chat_not_found', 'not_chat_member'],
  result: messagePage,
  handler: async ({ user, store }, p) => {
    const chat = await readableChat(store, user, p.chat_id);
    const limit = p.limit ?? limits.page_size_default;
    const { messages, next } = await searching(store, user.id, () =>
      store.search.inChat(chat, p.query, p.cursor ?? 0, limit),
    );
    const shown = await page(messages, false, ({ id }) => String(id), viewsFor(store, user));
    return next === 0 ? shown : { next_cursor: String(next), ...shown };
  },
});

/**
 * Returns the chats that must still be searched, most recent activity first. If `before` is not 0, the search in the
 * first chat continues with message ids below `before`.
 */
function chatsAfter(order: readonly ActiveChat[], cursor: string | undefined) {
  if (cursor === undefined) return { left: order, before: 0 };
  const [date, id, before] = cursor.split('_').map(Number) as [number, number, number];
  const behind = order.filter((each) => each.date < date || (each.date === date && each.chat.id < id));
  const first = before === 0 ? undefined : order.find(({ chat }) => chat.id === id);
  if (first === undefined) return { left: behind, before: 0 };
  // Uses the date from the cursor for this chat, because the chat may have a newer message by now.
  return { left: [{ ...first, date }, ...behind.filter((each) => each !== first)], before };
}

export const searchMessages = defineEndpoint({
  verb: 'GET',
  path: '/api/search/messages',
  summary:
    'Searches the newest messages in each of the caller’s chats. Returns up to 3 messages per chat. The chats are sorted by their latest messages. A page can be empty although another page follows.',
  params: z.object({
    query,
    cursor: cursor.describe('`next_cursor` of the previous page'),
    limit: optional(pageSize),
  }),
  result: messagePage,
  handler: async ({ user, store }, p) => {
    const limit = p.limit ?? limits.page_size_default;
    const chats = await store.chats.listOf(user.id);
    const order = await store.activity.order(user.id, chats, p.cursor !== undefined);
    const { left, before } = chatsAfter(order, p.cursor);
    const found = await searching(store, user.id, () =>
      store.search.inChats(
        left.map(({ chat }) => chat),
        p.query,
        before,
        limit,
      ),
    );
    const last = left[found.chats - 1];
    const more = found.next > 0 || found.chats < left.length;
    const entries = new Map(left.map((each) => [each.chat.id, each]));
    const shown = await page(
      found.messages,
      false,
      ({ chat, id }) => cursorOf(entries.get(chat.id) as ActiveChat, id),
      viewsFor(store, user),
    );
    return more && last !== undefined ? { next_cursor: cursorOf(last, found.next), ...shown } : shown;
  },
});
