/** Blocks and unblocks people, and lists the blocked people (decision 0083). */
import { z } from 'zod';
import { namedPerson } from '../../actions/people.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageById } from '../../server/pages.js';
import { userProfile } from '../../store/chats/chats.js';
import { viewStranger } from '../../view/users.js';
import { numberCursor, pageSize, usernameOrId } from '../../wire/fields.js';
import { blockedPage } from '../../wire/people_results.js';
import { optional } from '../../wire/schema.js';

const path = '/api/people/{person}/block';
const params = z.object({ person: usernameOrId });

export const blockPerson = defineEndpoint({
  verb: 'POST',
  path,
  summary:
    'Blocks a person. Until the person is unblocked, neither of the two can open their chat or write in it.',
  params,
  errors: ['user_not_found', 'too_many_blocked_people'],
  handler: async ({ user, store }, p) => {
    const { person } = await namedPerson(store, user, p.person);
    await store.people.setBlocked(user.id, person.id, true);
  },
});

export const unblockPerson = defineEndpoint({
  verb: 'DELETE',
  path,
  summary: 'Unblocks a person.',
  params,
  errors: ['user_not_found'],
  handler: async ({ user, store }, p) => {
    const { person } = await namedPerson(store, user, p.person);
    await store.people.setBlocked(user.id, person.id, false);
  },
});

export const listBlocked = defineEndpoint({
  verb: 'GET',
  path: '/api/me/blocked_people',
  summary: 'Lists the people whom the caller blocked, most recently blocked first.',
  params: z.object({ cursor: numberCursor, limit: optional(pageSize) }),
  result: blockedPage,
  handler: async ({ user, store }, p) => {
    const limit = p.limit ?? limits.page_size_default;
    const found = await store.people.blocked(user.id, p.cursor ?? limits.id_max, limit + 1);
    return pageById(found, limit, async ({ blocked_id, date }) => {
      const person = await store.users.find(blocked_id);
      return { user: viewStranger(person ? userProfile(person) : { id: blocked_id, n: '' }), date };
    });
  },
});
