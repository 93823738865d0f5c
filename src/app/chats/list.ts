import { z } from 'zod';
import { listedChats } from '../../api/chat_results.js';
import { chatSummary } from '../../api/chat_summary.js';
import { defineEndpoint } from '../../api/endpoint.js';

export const listChats = defineEndpoint({
  verb: 'GET',
  path: '/api/chats',
  summary: 'Chats of the caller, each with its last message, the latest first.',
  params: z.object({}),
  result: listedChats,
  handler: async (context) => {
    const { user, store } = context;
    const chats = await store.chats.listOf(user.id);
    const ids = chats.map(({ id }) => id);
    const [marks, muted] = await Promise.all([
      store.readMarks.of(user.id, ids),
      store.mutes.of(user.id, ids),
    ]);
    const shown = await Promise.all(chats.map((chat) => chatSummary(context, chat, user, marks, muted)));
    const dateOf = (chat: Readonly<Record<string, unknown>>) =>
      (chat.last_message as { date?: number } | undefined)?.date ?? 0;
    return shown.filter((chat) => chat !== null).sort((a, b) => dateOf(b) - dateOf(a));
  },
});
