import { z } from 'zod';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineAdminEndpoint } from '../../server/endpoint.js';
import { pageById } from '../../server/pages.js';
import { adminCallPage } from '../../wire/admin_results.js';
import { numberCursor, pageSize } from '../../wire/fields.js';
import { optional } from '../../wire/schema.js';

export const listAdminCalls = defineAdminEndpoint({
  verb: 'GET',
  path: '/api/admin/audit',
  summary:
    'Lists the calls that administrators made, newest first. If a call that only reads data is repeated within an hour, the calls share one entry.',
  params: z.object({ cursor: numberCursor, limit: optional(pageSize) }),
  result: adminCallPage,
  handler: async ({ store }, { cursor: before = limits.id_max, limit = limits.page_size_default }) =>
    pageById(await store.admins.calls(before, limit + 1), limit, ({ status, ...call }) => ({
      ...call,
      ...(status === null ? {} : { status }),
    })),
});
