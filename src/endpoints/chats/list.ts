import { z } from 'zod';
import { chatSummary } from '../../actions/chat_summary.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { page } from '../../server/pages.js';
import type { ActiveChat } from '../../store/chats/activity.js';
import { listedChats } from '../../wire/chat_results.js';
import { pageSize } from '../../wire/fields.js';
import { optional, text } from '../../wire/schema.js';

const cursorError = 'a cursor of an earlier answer';
const cursor = optional(text.regex(/^\d{1,12}_-?\d{1,14}$/, { error: cursorError }));

const cursorOf = ({ date, chat }: ActiveChat) => `${date}_${chat.id}`;

const isBehind = ({ date, chat }: ActiveChat, given: string): boolean => {
  const [at, id] = given.split('_').map(Number) as [number, number];
  return date < at || (date === at && chat.id < id);
};

export const listChats = defineEndpoint({
  verb: 'GET',
  path: '/api/chats',
  summary:
    'Lists the caller’s chats with previews of messages. The chat with the latest message comes first. A chat without messages is sorted by the time when the caller joined.',
  params: z.object({
    cursor: cursor.describe('`next_cursor` of the previous page'),
    limit: optional(pageSize),
  }),
  result: listedChats,
  handler: async (context, p) => {
    const { user, store } = context;
    const given = p.cursor;
    const chats = await store.chats.listOf(user.id);
    const all = await store.activity.order(user.id, chats, given !== undefined);
    const left = given === undefined ? all : all.filter((each) => isBehind(each, given));
    const rows = left.slice(0, p.limit ?? limits.page_size_default);
    const ids = rows.map(({ chat }) => chat.id);
    const [marks, muted] = await Promise.all([
      store.readMarks.of(user.id, ids),
      store.mutes.of(user.id, ids),
    ]);
    return page(rows, left.length > rows.length, cursorOf, (some) =>
      Promise.all(some.map(({ chat, date }) => chatSummary(context, chat, user, marks, muted, date))),
    );
  },
});
