/** Sets and removes the caller's avatar. `GET /api/me` shows it. */
import { z } from 'zod';
import { pictureErrors, putAvatar, removeAvatar } from '../../actions/pictures.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { picture } from '../../wire/results.js';

const path = '/api/me/avatar';

export const putOwnAvatar = defineEndpoint({
  verb: 'PUT',
  path,
  summary:
    'Sets the caller’s avatar. The request body is a PNG, JPEG or WebP. The picture is cropped to a circle.',
  params: z.object({}),
  rawBody: true,
  errors: [...pictureErrors, 'picture_too_small', 'user_not_found'],
  result: picture,
  handler: ({ user, store, files, request }) => putAvatar({ store, files }, user.id, request.body),
});

export const removeOwnAvatar = defineEndpoint({
  verb: 'DELETE',
  path,
  summary: 'Removes the caller’s avatar.',
  params: z.object({}),
  errors: ['picture_not_found', 'user_not_found'],
  handler: ({ user, store, files }) => removeAvatar({ store, files }, user.id),
});
