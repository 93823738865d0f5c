import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { boolean, optional } from '../../api/schema.js';
import { amount, media, mediaErrors, mediaParams, sendMedia } from '../../api/send_media.js';

/** Sends a video (behaviour §4). */
export const sendVideo = defineMethod({
  name: 'sendVideo',
  summary: 'Sends a video.',
  params: z.object({
    ...mediaParams,
    video: media,
    width: amount,
    height: amount,
    duration: amount,
    has_spoiler: optional(boolean),
  }),
  errors: mediaErrors,
  handler: (context, p) => sendMedia(context, 'video', p.video, p),
});
