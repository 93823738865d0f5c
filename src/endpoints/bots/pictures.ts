/**
 * Reads, sets and removes a bot's avatar and start picture. No other call sets them (interface §2, Other identity
 * items).
 */
import { z } from 'zod';
import { pictureErrors, putPicture, removePicture, viewPicture } from '../../actions/pictures.js';
import { type ErrorName, fail } from '../../errors.js';
import type { PictureKind } from '../../files/pictures.js';
import type { Endpoint } from '../../server/endpoint.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { botId } from '../../wire/fields.js';
import { picture } from '../../wire/results.js';

const params = z.object({ bot_id: botId });

function endpointsOf(
  kind: PictureKind,
  name: string,
  what: string,
  errors: readonly ErrorName[],
): readonly [show: Endpoint, set: Endpoint, remove: Endpoint] {
  const path = `/api/me/bots/{bot_id}/${kind}`;
  const show = defineEndpoint({
    verb: 'GET',
    path,
    summary: `Returns the ${name} of a bot.`,
    params,
    errors: ['bot_not_found', 'not_bot_owner', 'picture_not_found'],
    result: picture,
    handler: async ({ user, store, files }, { bot_id }) => {
      await store.bots.owned(user.id, bot_id);
      const { pictures } = await store.bots.descriptions(bot_id);
      return viewPicture(files, pictures[kind] ?? fail('picture_not_found'));
    },
  });
  const set = defineEndpoint({
    verb: 'PUT',
    path,
    summary: `Sets the ${name} of a bot. The request body is a PNG, JPEG or WebP. ${what}.`,
    params,
    rawBody: true,
    errors: ['bot_not_found', 'not_bot_owner', ...pictureErrors, ...errors],
    result: picture,
    handler: ({ user, store, files, request }, { bot_id }) =>
      putPicture({ store, files }, user.id, bot_id, kind, request.body),
  });
  const remove = defineEndpoint({
    verb: 'DELETE',
    path,
    summary: `Removes the ${name} of a bot.`,
    params,
    errors: ['bot_not_found', 'not_bot_owner', 'picture_not_found'],
    handler: ({ user, store, files }, { bot_id }) => removePicture({ store, files }, user.id, bot_id, kind),
  });
  return [show, set, remove];
}

const avatar = endpointsOf('avatar', 'avatar', 'The picture is cropped to a circle', ['picture_too_small']);

const startPicture = endpointsOf(
  'start_picture',
  'start picture',
  'The picture must have exactly 640x360 pixels, and is shown to people who have not started the bot',
  ['start_picture_size'],
);

// The list of endpoints is generated from exported constants, so each endpoint needs its own constant.
export const showAvatar: Endpoint = avatar[0];
export const putAvatar: Endpoint = avatar[1];
export const removeAvatar: Endpoint = avatar[2];
export const showStartPicture: Endpoint = startPicture[0];
export const putStartPicture: Endpoint = startPicture[1];
export const removeStartPicture: Endpoint = startPicture[2];
