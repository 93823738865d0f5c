import { z } from 'zod';
import { defineEndpoint } from '../../server/endpoint.js';
import { storedUploads } from '../../wire/account_results.js';

export const showUploads = defineEndpoint({
  verb: 'GET',
  path: '/api/me/uploads',
  summary: 'Returns the total size of the files that the caller and the caller’s bots have stored.',
  params: z.object({}),
  result: storedUploads,
  handler: async ({ user, store }) => {
    const { bytes, max } = await store.uploads.stored(user.id);
    return { bytes, ...(max > 0 && { bytes_max: max }) };
  },
});
