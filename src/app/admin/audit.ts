/** What administrators did. */
import { z } from 'zod';
import { defineAdminEndpoint } from '../../api/endpoint.js';
import { numberCursor, pageSize } from '../../api/fields.js';
import { adminCallPage } from '../../api/operations.js';
import { pageOfRows, viewed } from '../../api/pages.js';
import { optional } from '../../api/schema.js';
import { limits } from '../../limits.js';

export const listAdminCalls = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/audit',
  summary: 'Pages through the calls of administrators, newest first. Repeated reads share one entry an hour.',
  params: z.object({ cursor: numberCursor, limit: optional(pageSize) }),
  result: adminCallPage,
  handler: async ({ store }, { cursor: before = limits.id_max, limit = limits.page_size_default }) =>
    pageOfRows(
      await store.admins.calls(before, limit + 1),
      limit,
      ({ id }) => String(id),
      viewed(({ status, ...call }) => ({ ...call, ...(status === null ? {} : { status }) })),
    ),
});
