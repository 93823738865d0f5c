import { z } from 'zod';
import { chatSummary } from '../../actions/chat_summary.js';
import { readableChat } from '../../actions/reading.js';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { isDirect } from '../../store/core/keys.js';
import { listedChat } from '../../wire/chat_results.js';
import { appChatId } from '../../wire/fields.js';

export const getChat = defineEndpoint({
  verb: 'GET',
  path: '/api/chats/{chat_id}',
  summary: 'Returns one of the caller’s chats.',
  params: z.object({ chat_id: appChatId }),
  errors: ['chat_not_found', 'not_chat_member'],
  result: listedChat,
  handler: async (context, p) => {
    const { user, store } = context;
    const chat = await readableChat(store, user, p.chat_id);
    const [marks, muted, about] = await Promise.all([
      store.readMarks.of(user.id, [chat.id]),
      store.mutes.of(user.id, [chat.id]),
      isDirect(chat) ? null : store.chats.details(chat),
    ]);
    const summary = (await chatSummary(context, chat, user, marks, muted)) ?? fail('chat_not_found');
    return about?.description ? { ...summary, description: about.description } : summary;
  },
});
