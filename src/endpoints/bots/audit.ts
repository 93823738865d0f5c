import { z } from 'zod';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageById } from '../../server/pages.js';
import { viewAudit } from '../../view/bots.js';
import { botId, numberCursor, pageSize } from '../../wire/fields.js';
import { auditPage } from '../../wire/owner_results.js';
import { optional } from '../../wire/schema.js';

export const listAudit = defineEndpoint({
  verb: 'GET',
  path: '/api/me/bots/{bot_id}/audit',
  summary:
    'Lists the audit log of a bot, newest first. Events from before the caller became the owner are not included.',
  params: z.object({ bot_id: botId, cursor: numberCursor, limit: optional(pageSize) }),
  errors: ['bot_not_found', 'not_bot_owner'],
  result: auditPage,
  handler: async ({ user, store }, p) => {
    const bot = await store.bots.owned(user.id, p.bot_id);
    const limit = p.limit ?? limits.page_size_default;
    const found = await store.audit.list(bot.id, p.cursor ?? limits.id_max, limit + 1);
    return pageById(found, limit, viewAudit);
  },
});
