/** Transfers a bot to a new owner (interface §3, §5.7). */
import { z } from 'zod';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageOfRows } from '../../server/pages.js';
import { viewTransfer } from '../../view/bots.js';
import { botId, confirm, numberCursor, pageSize, usernameOfPerson } from '../../wire/fields.js';
import { transferPage } from '../../wire/owner_results.js';
import { optional } from '../../wire/schema.js';

export const transferBot = defineEndpoint({
  verb: 'POST',
  path: '/api/me/bots/{bot_id}/transfer',
  summary:
    'Transfers a bot to another person. The caller loses access, and the old token stops working. If TRANSFER_CONSENT is set, the transfer takes place only after the recipient accepts.',
  params: z.object({ bot_id: botId, username: usernameOfPerson, confirm }),
  errors: [
    'bot_not_found',
    'not_bot_owner',
    'username_unknown',
    'username_not_person',
    'transfer_to_self',
    'recipient_suspended',
    'recipient_too_many_bots',
  ],
  handler: async ({ user, store }, p) => {
    await store.bots.transfer(user.id, p.bot_id, p.username);
  },
});

export const listTransfers = defineEndpoint({
  verb: 'GET',
  path: '/api/me/transfers',
  summary:
    'Lists the open transfer offers that the caller made or received. There are offers only if TRANSFER_CONSENT is set.',
  params: z.object({ cursor: numberCursor, limit: optional(pageSize) }),
  result: transferPage,
  handler: async ({ user, store }, { cursor: after = 0, limit = limits.page_size_default }) =>
    pageOfRows(await store.bots.transfersOf(user.id, after, limit + 1), limit, viewTransfer, ({ bot_id }) =>
      String(bot_id),
    ),
});

const params = z.object({ bot_id: botId });

export const acceptTransfer = defineEndpoint({
  verb: 'POST',
  path: '/api/me/transfers/{bot_id}/accept',
  summary: 'Accepts an offer to transfer a bot to the caller.',
  params,
  errors: ['transfer_not_found', 'too_many_bots'],
  handler: ({ user, store }, p) => store.bots.acceptTransfer(user.id, p.bot_id),
});

export const declineTransfer = defineEndpoint({
  verb: 'POST',
  path: '/api/me/transfers/{bot_id}/decline',
  summary: 'Declines an offer to transfer a bot, or withdraws the caller’s own offer.',
  params,
  errors: ['transfer_not_found'],
  handler: ({ user, store }, p) => store.bots.withdrawTransfer(user.id, p.bot_id),
});
