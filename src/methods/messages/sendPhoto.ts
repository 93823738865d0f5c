import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { message } from '../../api/results.js';
import { media, mediaErrors, mediaParams, sendMedia, spoiler } from '../../api/send_media.js';

/** Sends a picture: a file, an HTTPS URL or a `file_id` (behaviour §4). */
export const sendPhoto = defineMethod({
  name: 'sendPhoto',
  summary: 'Sends a photo: an upload, an HTTPS URL or a `file_id`.',
  params: z.object({ ...mediaParams, photo: media, has_spoiler: spoiler }),
  errors: mediaErrors,
  result: message,
  handler: (context, p) => sendMedia(context, 'photo', p.photo, p),
});
