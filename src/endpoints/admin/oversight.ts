/** Lets operators suspend bots and people, and reserve usernames (behaviour §14). */
import { z } from 'zod';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineAdminEndpoint } from '../../server/endpoint.js';
import { pageOfRows } from '../../server/pages.js';
import type { Store } from '../../store/store.js';
import { pageSize, userId, username } from '../../wire/fields.js';
import { pageOf } from '../../wire/results.js';
import { answer, optional, text } from '../../wire/schema.js';

const bot = z.object({ id: userId });
const user = z.object({ id: userId });

const ofBot = (suspended: boolean) => ({
  path: '/api/admin/bots/{id}/suspension',
  params: bot,
  errors: ['bot_not_found'] as const,
  handler: ({ store }: { readonly store: Store }, p: z.output<typeof bot>) =>
    store.oversight.suspendBot(p.id, suspended),
});

const ofUser = (suspended: boolean) => ({
  path: '/api/admin/users/{id}/suspension',
  params: user,
  errors: ['user_not_found'] as const,
  handler: ({ store }: { readonly store: Store }, p: z.output<typeof user>) =>
    store.oversight.suspendUser(p.id, suspended),
});

export const suspendBot = defineAdminEndpoint({
  verb: 'POST',
  summary:
    'Suspends a bot. The bot’s token and webhook stop working before this call returns. New updates for the bot wait in its queue.',
  ...ofBot(true),
});

export const unsuspendBot = defineAdminEndpoint({
  verb: 'DELETE',
  summary: 'Ends the suspension of a bot, so that its token works again.',
  ...ofBot(false),
});

export const suspendUser = defineAdminEndpoint({
  verb: 'POST',
  summary:
    'Suspends a person. The person’s tokens stop working before this call returns. The person’s bots keep working.',
  ...ofUser(true),
});

export const unsuspendUser = defineAdminEndpoint({
  verb: 'DELETE',
  summary: 'Ends the suspension of a person, so that their tokens work again.',
  ...ofUser(false),
});

const names = '/api/admin/reserved_usernames';

export const reservedUsernames = defineAdminEndpoint({
  verb: 'GET',
  path: names,
  summary: 'Lists the reserved usernames.',
  params: z.object({
    cursor: optional(text).describe('`next_cursor` of the previous page'),
    limit: optional(pageSize),
  }),
  result: pageOf(z.string()),
  handler: async ({ store }, { cursor = '', limit = limits.page_size_default }) => {
    const found = await store.oversight.reserved(cursor, limit + 1);
    const same = (name: string) => name;
    return pageOfRows(found, limit, same, same);
  },
});

export const reserveUsername = defineAdminEndpoint({
  verb: 'POST',
  path: names,
  summary: 'Reserves a username, so that nobody can take it.',
  target: 'username',
  params: z.object({ username }),
  errors: ['username_invalid', 'username_taken'],
  handler: ({ store }, p) => store.oversight.reserve(p.username),
});

export const releaseUsername = defineAdminEndpoint({
  verb: 'DELETE',
  path: `${names}/{username}`,
  summary: 'Ends the reservation of a username.',
  params: z.object({ username: z.string({ error: answer('username_not_reserved') }) }),
  errors: ['username_not_reserved'],
  handler: ({ store }, p) => store.oversight.release(p.username),
});
