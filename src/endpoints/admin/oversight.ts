/** Lets operators suspend bots and people, and reserve usernames (behaviour §14). */
import { z } from 'zod';
import { limits } from '../../limits.js';
import { defineAdminEndpoint } from '../../server/endpoint.js';
import { pageOfRows, viewed } from '../../server/pages.js';
import type { Store } from '../../store/store.js';
import { pageSize, userId, username } from '../../wire/fields.js';
import { done, pageOf } from '../../wire/results.js';
import { answer, optional, text } from '../../wire/schema.js';

const bot = z.object({ id: userId });
const user = z.object({ id: userId });

const ofBot = (suspended: boolean) => ({
  path: '/api/admin/bots/{id}/suspension',
  params: bot,
  errors: ['bot_not_found'] as const,
  result: done,
  handler: async ({ store }: { readonly store: Store }, p: z.output<typeof bot>) => {
    await store.oversight.suspendBot(p.id, suspended);
    return true;
  },
});

const ofUser = (suspended: boolean) => ({
  path: '/api/admin/users/{id}/suspension',
  params: user,
  errors: ['user_not_found'] as const,
  result: done,
  handler: async ({ store }: { readonly store: Store }, p: z.output<typeof user>) => {
    await store.oversight.suspendUser(p.id, suspended);
    return true;
  },
});

export const suspendBot = defineAdminEndpoint({
  verb: 'POST',
  summary: 'Suspends a bot. Its token and webhook stop before this call returns; its updates are kept.',
  ...ofBot(true),
});

export const unsuspendBot = defineAdminEndpoint({
  verb: 'DELETE',
  summary: 'Ends the suspension of a bot. Its token works again.',
  ...ofBot(false),
});

export const suspendUser = defineAdminEndpoint({
  verb: 'POST',
  summary: 'Suspends a person. Their tokens stop working before this call returns; their bots go on.',
  ...ofUser(true),
});

export const unsuspendUser = defineAdminEndpoint({
  verb: 'DELETE',
  summary: 'Ends the suspension of a person. Their tokens work again.',
  ...ofUser(false),
});

const names = '/api/admin/reserved_usernames';

export const reservedUsernames = defineAdminEndpoint({
  verb: 'GET',
  path: names,
  summary: 'Pages through the reserved usernames.',
  params: z.object({
    cursor: optional(text).describe('`next_cursor` of the previous page'),
    limit: optional(pageSize),
  }),
  result: pageOf(z.string()),
  handler: async ({ store }, { cursor = '', limit = limits.page_size_default }) => {
    const found = await store.oversight.reserved(cursor, limit + 1);
    return pageOfRows(
      found,
      limit,
      (name) => name,
      viewed((name) => name),
    );
  },
});

export const reserveUsername = defineAdminEndpoint({
  verb: 'POST',
  path: names,
  summary: 'Reserves a username, so that nobody can take it.',
  target: 'username',
  params: z.object({ username }),
  errors: ['username_invalid', 'username_taken'],
  result: done,
  handler: async ({ store }, p) => {
    await store.oversight.reserve(p.username);
    return true;
  },
});

export const releaseUsername = defineAdminEndpoint({
  verb: 'DELETE',
  path: `${names}/{username}`,
  summary: 'Removes a username from the reserved ones.',
  params: z.object({ username: z.string({ error: answer('username_not_reserved') }) }),
  errors: ['username_not_reserved'],
  result: done,
  handler: async ({ store }, p) => {
    await store.oversight.release(p.username);
    return true;
  },
});
