/**
 * Manages a person's tokens for the application API. A person may have several tokens with different names (behaviour
 * §11).
 */
import { z } from 'zod';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageById } from '../../server/pages.js';
import { viewUserToken } from '../../view/users.js';
import { namedToken, userTokenPage } from '../../wire/account_results.js';
import { numberCursor, pageSize, tokenName } from '../../wire/fields.js';
import { integer, optional, text } from '../../wire/schema.js';

const path = '/api/me/tokens';

export const listTokens = defineEndpoint({
  verb: 'GET',
  path,
  summary: 'Lists the caller’s tokens, sorted by name. The answer does not contain the secrets.',
  params: z.object({ cursor: numberCursor, limit: optional(pageSize) }),
  result: userTokenPage,
  handler: async ({ user, store }, { cursor: after = 0, limit = limits.page_size_default }) =>
    pageById(await store.users.tokens(user.id, after, limit + 1), limit, viewUserToken),
});

export const createToken = defineEndpoint({
  verb: 'POST',
  path,
  summary: `Issues a token to the caller. A person can have at most ${limits.user_tokens_max} tokens. The token is shown only once.`,
  params: z.object({ name: tokenName }),
  errors: ['name_invalid', 'name_too_long', 'token_name_taken', 'too_many_tokens'],
  result: namedToken,
  handler: async ({ user, store }, { name }) => {
    const { id, token } = await store.users.addToken(user.id, name);
    return { id, name, token };
  },
});

export const removeToken = defineEndpoint({
  verb: 'DELETE',
  path,
  summary:
    'Revokes one of the caller’s tokens by `id` or `name`. The token stops working before this call returns.',
  params: z.object({
    id: optional(integer()).describe('Id of the token'),
    name: optional(text).describe('Name of the token, instead of `id`'),
  }),
  errors: ['token_not_found'],
  handler: async ({ user, store }, { id, name }) => {
    if (id !== undefined) await store.users.removeToken(user.id, { id });
    else if (name !== undefined) await store.users.removeToken(user.id, { name });
    else fail('parameter_required', { name: 'id' });
  },
});
