/** Sets and removes the caller's own unsent text in a chat. `drafts.ts` shows the drafts of bots. */
import { z } from 'zod';
import { readableChat } from '../../actions/reading.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { isLongerThan } from '../../rules/text.js';
import { defineEndpoint } from '../../server/endpoint.js';
import type { User } from '../../store/core/control.js';
import { isDirect } from '../../store/core/keys.js';
import type { Store } from '../../store/store.js';
import { draftVersion } from '../../wire/account_results.js';
import { appChatId } from '../../wire/fields.js';

const path = '/api/chats/{chat_id}/draft';
const textError = `a text of up to ${limits.text_length_max} characters`;
const draftText = z
  .string({ error: ({ input }) => (input === undefined ? '' : textError) })
  .refine((given) => !isLongerThan(given, limits.text_length_max), { error: textError });

async function put(store: Store, user: User, chatId: number, text: string) {
  store.actionRates.takeDraft(user.id);
  const chat = await readableChat(store, user, chatId);
  if (isDirect(chat) && !(await store.chats.find(chat))) fail('chat_not_found');
  return { version: await store.personDrafts.put(user.id, chat, text) };
}

export const putPersonDraft = defineEndpoint({
  verb: 'PUT',
  path,
  inRedis: true,
  summary:
    'Stores the text that the caller has written in a chat, but not sent. All windows of the caller get it. The drafts of bots are not affected.',
  params: z.object({
    chat_id: appChatId,
    text: draftText.describe('Text of up to 4,096 characters; an empty text removes the draft'),
  }),
  uncounted: true,
  errors: ['chat_not_found', 'not_chat_member'],
  result: draftVersion,
  handler: ({ user, store }, { chat_id, text }) => put(store, user, chat_id, text),
});

export const removePersonDraft = defineEndpoint({
  verb: 'DELETE',
  path,
  inRedis: true,
  summary: 'Removes the text that the caller has written in a chat, but not sent.',
  params: z.object({ chat_id: appChatId }),
  uncounted: true,
  errors: ['chat_not_found', 'not_chat_member'],
  result: draftVersion,
  handler: ({ user, store }, { chat_id }) => put(store, user, chat_id, ''),
});
