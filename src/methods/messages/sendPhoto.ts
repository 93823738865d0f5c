import { z } from 'zod';
import { media, mediaErrors, mediaParams, sendMedia, visualParams } from '../../actions/send_media.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';

export const sendPhoto = defineMethod({
  name: 'sendPhoto',
  effect: 'grow',
  summary: 'Sends a photo: an upload, an HTTPS URL or a `file_id`.',
  params: z.object({ ...mediaParams, photo: media, ...visualParams }),
  errors: mediaErrors,
  result: message,
  handler: (context, p) => sendMedia(context, 'photo', p.photo, p),
});
