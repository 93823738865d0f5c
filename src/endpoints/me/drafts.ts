/** Lists, sets and removes the caller's unsent texts. Drafts that bots write are in `chats/drafts.ts`. */
import { z } from 'zod';
import { readableChat } from '../../actions/reading.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { isLongerThan } from '../../rules/text.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageOfRows } from '../../server/pages.js';
import type { User } from '../../store/core/control.js';
import { isDirect } from '../../store/core/keys.js';
import type { Store } from '../../store/store.js';
import { chatDraftPage, draftVersion } from '../../wire/account_results.js';
import { appChatId, pageSize } from '../../wire/fields.js';
import { optional, text } from '../../wire/schema.js';

const path = '/api/me/drafts/{chat_id}';
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
    'Stores the caller’s unsent text in a chat, and sends the text to all windows of the caller. Drafts that bots write are not affected.',
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
  summary: 'Removes the caller’s unsent text in a chat.',
  params: z.object({ chat_id: appChatId }),
  uncounted: true,
  errors: ['chat_not_found', 'not_chat_member'],
  result: draftVersion,
  handler: ({ user, store }, { chat_id }) => put(store, user, chat_id, ''),
});

const cursor = optional(text.regex(/^-?\d{1,13}$/, { error: 'a cursor of an earlier answer' }));

export const listDrafts = defineEndpoint({
  verb: 'GET',
  path: '/api/me/drafts',
  summary: 'Lists the caller’s unsent texts, sorted by chat id. A removed text is listed as an empty text.',
  params: z.object({
    cursor: cursor.describe('`next_cursor` of the previous page'),
    limit: optional(pageSize),
  }),
  result: chatDraftPage,
  handler: async ({ user, store }, p) => {
    const after = p.cursor === undefined ? Number.NEGATIVE_INFINITY : Number(p.cursor);
    const drafts = (await store.personDrafts.list(user.id)).filter(({ chat_id }) => chat_id > after);
    const limit = p.limit ?? limits.page_size_default;
    return pageOfRows(
      drafts,
      limit,
      (draft) => draft,
      ({ chat_id }) => String(chat_id),
    );
  },
});
