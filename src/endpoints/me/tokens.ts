/** A person's tokens for the application API. A person may have several, told apart by name (behaviour §11). */
import { z } from 'zod';
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { pageOfRows, viewed } from '../../server/pages.js';
import { viewUserToken } from '../../view/users.js';
import { namedToken, userTokenPage } from '../../wire/account_results.js';
import { numberCursor, pageSize, tokenName } from '../../wire/fields.js';
import { done } from '../../wire/results.js';
import { integer, optional, text } from '../../wire/schema.js';

const path = '/api/me/tokens';

export const listTokens = defineEndpoint({
  verb: 'GET',
  path,
  summary: 'Pages through the tokens of the caller by name, without their secrets.',
  params: z.object({ cursor: numberCursor, limit: optional(pageSize) }),
  result: userTokenPage,
  handler: async ({ user, store }, { cursor: after = 0, limit = limits.page_size_default }) =>
    pageOfRows(
      await store.users.tokens(user.id, after, limit + 1),
      limit,
      ({ id }) => String(id),
      viewed(viewUserToken),
    ),
});

export const createToken = defineEndpoint({
  verb: 'POST',
  path,
  summary: `Issues a further token to the caller, up to ${limits.user_tokens_max}. It is shown only once.`,
  params: z.object({ name: tokenName }),
  errors: ['name_invalid', 'name_too_long', 'token_name_taken', 'too_many_tokens'],
  result: namedToken,
  handler: async ({ user, store }, { name }) => {
    const { id, token } = await store.users.addToken(user.id, name);
    return { id, name, token };
  },
});

/** May also revoke the token of this call. */
export const removeToken = defineEndpoint({
  verb: 'DELETE',
  path,
  summary: 'Revokes a token of the caller by `id` or `name`. It stops working before this call returns.',
  params: z.object({
    id: optional(integer()).describe('Of the list'),
    name: optional(text).describe('Instead of `id`'),
  }),
  errors: ['token_not_found'],
  result: done,
  handler: async ({ user, store }, { id, name }) => {
    if (id !== undefined) await store.users.removeToken(user.id, { id });
    else if (name !== undefined) await store.users.removeToken(user.id, { name });
    else fail('parameter_required', { name: 'id' });
    return true;
  },
});
