import { z } from 'zod';
import { chatSummary } from '../../actions/chat_summary.js';
import { readableChat } from '../../actions/reading.js';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { listedChat } from '../../wire/chat_results.js';
import { appChatId } from '../../wire/fields.js';

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
