/** What administrators did. */
import { z } from 'zod';
import { defineAdminEndpoint } from '../../api/endpoint.js';
import { numberCursor, pageSize } from '../../api/fields.js';
import { adminCallPage } from '../../api/operations.js';
import { optional } from '../../api/schema.js';
import { limits } from '../../limits.js';

export const listAdminCalls = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/audit',
  summary:
    'Pages through the calls of administrators, newest first. Reads that are alike are one entry an hour.',
  params: z.object({ cursor: numberCursor, limit: optional(pageSize) }),
  result: adminCallPage,
  handler: async ({ store }, p) => {
    const { items, next } = await store.admins.calls(p.cursor ?? null, p.limit ?? limits.page_size_default);
    return {
      items: items.map(({ status, ...call }) => ({ ...call, ...(status === null ? {} : { status }) })),
      ...(next === null ? {} : { next_cursor: String(next) }),
    };
  },
});
