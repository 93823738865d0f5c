import { z } from 'zod';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageOfRows } from '../../server/pages.js';
import { chatDraftPage } from '../../wire/account_results.js';
import { pageSize } from '../../wire/fields.js';
import { optional, text } from '../../wire/schema.js';

const cursor = optional(text.regex(/^-?\d{1,13}$/, { error: 'a cursor of an earlier answer' }));

export const listDrafts = defineEndpoint({
  verb: 'GET',
  path: '/api/me/drafts',
  summary:
    'Lists the texts that the caller has written, but not sent, sorted by chat id. Removed drafts are listed with an empty text.',
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
