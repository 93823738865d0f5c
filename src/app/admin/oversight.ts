/** Operators suspend bots and people, and reserve usernames (behaviour §14). */
import { z } from 'zod';
import { defineAdminEndpoint } from '../../api/endpoint.js';
import { pageSize, userId, username } from '../../api/fields.js';
import { pageOfRows, viewed } from '../../api/pages.js';
import { done, pageOf } from '../../api/results.js';
import { answer, optional, text } from '../../api/schema.js';
import { limits } from '../../limits.js';
import type { Store } from '../../store/store.js';

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
  summary:
    'Suspends a bot: no node accepts its token and its webhook rests once this has answered; what comes for it waits.',
  ...ofBot(true),
});

export const unsuspendBot = defineAdminEndpoint({
  verb: 'DELETE',
  summary: 'Lets a suspended bot go on, with the same token.',
  ...ofBot(false),
});

export const suspendUser = defineAdminEndpoint({
  verb: 'POST',
  summary: 'Suspends a person: no node accepts a token of theirs once this has answered; their bots go on.',
  ...ofUser(true),
});

export const unsuspendUser = defineAdminEndpoint({
  verb: 'DELETE',
  summary: 'Lets a suspended person go on, with the same tokens.',
  ...ofUser(false),
});

const names = '/api/admin/reserved_usernames';

export const reservedUsernames = defineAdminEndpoint({
  verb: 'GET',
  path: names,
  summary: 'Pages through usernames that nobody may take.',
  params: z.object({
    cursor: optional(text).describe('`next_cursor` of the page before'),
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
  summary: 'Keeps a username from people, bots and chats.',
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
  summary: 'Lets a reserved username be taken.',
  params: z.object({ username: z.string({ error: answer('username_not_reserved') }) }),
  errors: ['username_not_reserved'],
  result: done,
  handler: async ({ store }, p) => {
    await store.oversight.release(p.username);
    return true;
  },
});
