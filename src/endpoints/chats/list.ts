import { z } from 'zod';
import { chatSummary } from '../../actions/chat_summary.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { page } from '../../server/pages.js';
import type { ActiveChat } from '../../store/chats/activity.js';
import { type ChatPlaces, isArchived, pinOf } from '../../store/chats/places.js';
import { listedChats } from '../../wire/chat_results.js';
import { pageSize } from '../../wire/fields.js';
import { boolean, optional, text } from '../../wire/schema.js';

const cursorError = 'a cursor of an earlier answer';
/**
 * Format of a cursor. After a page that ended with a pinned chat: `pin_` and the rank of that chat. After any other
 * page: the time and the id of the page's last chat.
 */
const cursor = optional(text.regex(/^(pin_\d{1,9}|\d{1,12}_-?\d{1,14})$/, { error: cursorError }));

interface ListedChat extends ActiveChat {
  /** The chat's rank among pinned chats, or 0. */
  readonly pin: number;
}

const cursorOf = ({ date, chat, pin }: ListedChat) => (pin > 0 ? `pin_${pin}` : `${date}_${chat.id}`);

function isBehind({ date, chat, pin }: ListedChat, given: string): boolean {
  const [at, id] = given.split('_').map(Number) as [number, number];
  if (given.startsWith('pin_')) return pin < id;
  return pin === 0 && (date < at || (date === at && chat.id < id));
}

/**
 * With `archived`, returns the archived chats. Otherwise returns the other chats, pinned chats first. `all` contains
 * all of these chats, sorted by activity.
 */
function chatsIn(all: readonly ActiveChat[], places: ChatPlaces, archived: boolean): ListedChat[] {
  return all
    .filter(({ chat, newest }) => isArchived(places, chat, newest) === archived)
    .map(({ chat, date, newest }) => ({ chat, date, newest, pin: pinOf(places, chat) }))
    .sort((a, b) => b.pin - a.pin);
}

export const listChats = defineEndpoint({
  verb: 'GET',
  path: '/api/chats',
  summary:
    'Lists the caller’s chats, each with a preview of its last message. Pinned chats come first. All other chats are sorted by the time of their last message, newest first. A chat without messages is sorted by the time when the caller joined it. Archived chats are in a separate list.',
  params: z.object({
    cursor: cursor.describe('`next_cursor` of the previous page'),
    archived: optional(boolean).describe('True for the list of archived chats'),
    limit: optional(pageSize),
  }),
  result: listedChats,
  handler: async (context, p) => {
    const { user, store } = context;
    const given = p.cursor;
    const chats = await store.chats.listOf(user.id);
    const [all, places] = await Promise.all([
      store.activity.order(user.id, chats, given !== undefined),
      store.places.of(user.id),
    ]);
    const listed = chatsIn(all, places, p.archived === true);
    const left = given === undefined ? listed : listed.filter((each) => isBehind(each, given));
    const rows = left.slice(0, p.limit ?? limits.page_size_default);
    const ids = rows.map(({ chat }) => chat.id);
    const [marks, muted] = await Promise.all([
      store.readMarks.of(user.id, ids),
      store.mutes.of(user.id, ids),
    ]);
    const settings = { marks, muted, places };
    const shown = await page(rows, left.length > rows.length, cursorOf, (some) =>
      Promise.all(
        some.map(async ({ chat, date }) => {
          const summary = await chatSummary(context, chat, user, settings, date);
          // Hides a chat of two people until it has a message. A stranger can thus open a chat, but becomes visible
          // only by writing.
          return summary?.type === 'person' && summary.last_message === undefined ? null : summary;
        }),
      ),
    );
    const archived_count = p.archived ? 0 : all.length - listed.length;
    return archived_count > 0 ? { ...shown, archived_count } : shown;
  },
});
