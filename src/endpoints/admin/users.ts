/** Lets operators create people and issue their tokens (behaviour §11). */
import { z } from 'zod';
import { defineAdminEndpoint } from '../../server/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { viewSelf } from '../../view/users.js';
import { confirm, externalSubject, languageCode, personName, userId, username } from '../../wire/fields.js';
import { issuedToken, userWithToken } from '../../wire/results.js';
import { optional } from '../../wire/schema.js';

export const createUser = defineAdminEndpoint({
  verb: 'POST',
  path: '/api/admin/users',
  summary: 'Creates a person and their first token.',
  target: 'username',
  params: z.object({
    username,
    first_name: personName,
    last_name: optional(personName),
    language_code: optional(languageCode),
    external_subject: optional(externalSubject),
  }),
  errors: [
    ...(['username_invalid', 'username_taken', 'name_invalid', 'language_invalid'] as const),
    ...(['subject_invalid', 'subject_taken', 'no_identity_provider'] as const),
  ],
  result: userWithToken,
  handler: async ({ store }, { external_subject, ...given }) => {
    const { user, token } = await store.users.create(given, { subject: external_subject });
    return { user: viewSelf(userProfile(user)), token };
  },
});

export const createUserToken = defineAdminEndpoint({
  verb: 'POST',
  path: '/api/admin/users/{id}/tokens',
  summary: 'Issues an additional token to a person.',
  params: z.object({ id: userId }),
  errors: ['user_not_found', 'too_many_tokens'],
  result: issuedToken,
  handler: async ({ store }, p) => ({ token: (await store.users.addToken(p.id)).token }),
});

export const removeUserTokens = defineAdminEndpoint({
  verb: 'DELETE',
  path: '/api/admin/users/{id}/tokens',
  summary: 'Revokes all tokens of a person. The revoked tokens stop working before this call returns.',
  params: z.object({ id: userId }),
  errors: ['user_not_found'],
  handler: ({ store }, p) => store.users.removeTokens(p.id),
});

export const deleteUser = defineAdminEndpoint({
  verb: 'DELETE',
  path: '/api/admin/users/{id}',
  summary: 'Deletes the account of a person permanently.',
  params: z.object({ id: userId, confirm }),
  errors: ['user_not_found'],
  handler: ({ store }, p) => store.accounts.end(p.id),
});

export const linkUser = defineAdminEndpoint({
  verb: 'PUT',
  path: '/api/admin/users/{id}/identity',
  summary: 'Links a person to a subject of the identity provider. Replaces the person’s earlier link.',
  params: z.object({ id: userId, external_subject: externalSubject }),
  errors: ['user_not_found', 'subject_invalid', 'subject_taken', 'no_identity_provider'],
  handler: ({ store }, p) => store.identities.link(p.id, p.external_subject),
});

export const unlinkUser = defineAdminEndpoint({
  verb: 'DELETE',
  path: '/api/admin/users/{id}/identity',
  summary:
    'Unlinks a person from the identity provider. Tokens that the provider issued for this person stop working before this call returns.',
  params: z.object({ id: userId }),
  errors: ['user_not_found', 'no_identity_provider'],
  handler: ({ store }, p) => store.identities.link(p.id, null),
});
