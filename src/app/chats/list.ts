import { z } from 'zod';
import { listedChats } from '../../api/chat_results.js';
import { chatSummary } from '../../api/chat_summary.js';
import { defineEndpoint } from '../../api/endpoint.js';
import { pageSize } from '../../api/fields.js';
import { page } from '../../api/pages.js';
import { optional, text } from '../../api/schema.js';
import { limits } from '../../limits.js';
import type { ActiveChat } from '../../store/chats/activity.js';

const cursorError = 'a cursor of an earlier answer';
/** Date and id of the last chat of the page before. */
const cursor = optional(text.regex(/^\d{1,12}_-?\d{1,14}$/, { error: cursorError }));

const cursorOf = ({ date, chat }: ActiveChat) => `${date}_${chat.id}`;

const isBehind = ({ date, chat }: ActiveChat, given: string): boolean => {
  const [at, id] = given.split('_').map(Number) as [number, number];
  return date < at || (date === at && chat.id < id);
};

const summariesAtOnce = 10;

export const listChats = defineEndpoint({
  verb: 'GET',
  path: '/api/chats',
  summary: 'Pages through the chats of the caller, the latest message first, with previews of messages.',
  params: z.object({
    cursor: cursor.describe('`next_cursor` of the page before'),
    limit: optional(pageSize),
  }),
  result: listedChats,
  handler: async (context, p) => {
    const { user, store } = context;
    const all = await store.activity.order(await store.chats.listOf(user.id));
    const given = p.cursor;
    const left = given === undefined ? all : all.filter((each) => isBehind(each, given));
    const rows = left.slice(0, p.limit ?? limits.page_size_default);
    const ids = rows.map(({ chat }) => chat.id);
    const [marks, muted] = await Promise.all([
      store.readMarks.of(user.id, ids),
      store.mutes.of(user.id, ids),
    ]);
    const shown: Array<Readonly<Record<string, unknown>> | null> = [];
    let bytes = 0;
    // Some at a time: each may have to be read from Postgres, and what does not fit is not read at all.
    while (shown.length < rows.length && bytes <= limits.page_bytes_max) {
      const next = rows.slice(shown.length, shown.length + summariesAtOnce);
      const summaries = await Promise.all(
        next.map(({ chat }) => chatSummary(context, chat, user, marks, muted)),
      );
      bytes += Buffer.byteLength(JSON.stringify(summaries));
      shown.push(...summaries);
    }
    return page(rows.slice(0, shown.length), shown, left.length > shown.length, cursorOf);
  },
});
