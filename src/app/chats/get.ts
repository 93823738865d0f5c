import { z } from 'zod';
import { listedChat } from '../../api/chat_results.js';
import { chatSummary } from '../../api/chat_summary.js';
import { defineEndpoint } from '../../api/endpoint.js';
import { appChatId } from '../../api/fields.js';
import { readableChat } from '../../api/reading.js';
import { fail } from '../../errors.js';

export const getChat = defineEndpoint({
  verb: 'GET',
  path: '/api/chats/{chat_id}',
  summary: 'Returns a chat of the caller.',
  params: z.object({ chat_id: appChatId }),
  errors: ['chat_not_found', 'not_chat_member'],
  result: listedChat,
  handler: async (context, p) => {
    const { user, store } = context;
    const chat = await readableChat(store, user, p.chat_id);
    const [marks, muted] = await Promise.all([
      store.readMarks.of(user.id, [chat.id]),
      store.mutes.of(user.id, [chat.id]),
    ]);
    return (await chatSummary(context, chat, user, marks, muted)) ?? fail('chat_not_found');
  },
});
