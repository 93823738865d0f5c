/** The log of administrators' calls. */
import { z } from 'zod';
import { limits } from '../../limits.js';
import { defineAdminEndpoint } from '../../server/endpoint.js';
import { pageOfRows, viewed } from '../../server/pages.js';
import { numberCursor, pageSize } from '../../wire/fields.js';
import { adminCallPage } from '../../wire/operations_results.js';
import { optional } from '../../wire/schema.js';

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
