import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { boolean, optional } from '../../api/schema.js';
import { media, mediaErrors, mediaParams, sendMedia } from '../../api/send_media.js';

/** Sends a picture: a file, an HTTPS URL or a `file_id` (behaviour §4). */
export const sendPhoto = defineMethod({
  name: 'sendPhoto',
  summary: 'Sends a picture: a file, an HTTPS URL or a `file_id`.',
  params: z.object({ ...mediaParams, photo: media, has_spoiler: optional(boolean) }),
  errors: mediaErrors,
  handler: (context, p) => sendMedia(context, 'photo', p.photo, p),
});
