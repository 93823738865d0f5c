import { z } from 'zod';
import { chatOfUser } from '../../actions/compose.js';
import { readableChat } from '../../actions/reading.js';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { isDirect } from '../../store/core/keys.js';
import { appChatId } from '../../wire/fields.js';
import { shownDraft } from '../../wire/results.js';
import { integer } from '../../wire/schema.js';

export const getDraft = defineEndpoint({
  verb: 'GET',
  path: '/api/chats/{chat_id}/draft',
  summary: 'Returns the message that a bot is writing in a direct chat.',
  params: z.object({ chat_id: appChatId }),
  errors: ['chat_not_found', 'not_chat_member'],
  result: z
    .strictObject({ draft: shownDraft.optional().describe('Absent if no bot is writing') })
    .meta({ id: 'ShownDraft', description: 'The bot’s draft in a chat.' }),
  handler: async ({ user, store }, p) => {
    const chat = await readableChat(store, user, p.chat_id);
    const draft = isDirect(chat) ? await store.drafts.read(chat) : null;
    return draft === null ? {} : { draft };
  },
});

export const stopDraft = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/draft/stop',
  inRedis: true,
  summary: 'Asks a bot to stop writing a message.',
  params: z.object({ chat_id: appChatId, draft_id: integer().describe('Id of the draft') }),
  errors: ['chat_not_found', 'draft_not_found', 'bot_blocked_by_you', 'cant_write_to_bot', 'bot_not_found'],
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    if (!isDirect(chat)) fail('draft_not_found');
    await store.drafts.stop(chat, userProfile(user), p.draft_id);
  },
});
