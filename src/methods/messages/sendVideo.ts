import { z } from 'zod';
import { amount, media, mediaErrors, mediaParams, sendMedia, spoiler } from '../../actions/send_media.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';

/** Sends a video (behaviour §4). */
export const sendVideo = defineMethod({
  name: 'sendVideo',
  effect: 'grow',
  summary: 'Sends a video.',
  params: z.object({
    ...mediaParams,
    video: media,
    width: amount,
    height: amount,
    duration: amount,
    has_spoiler: spoiler,
  }),
  errors: mediaErrors,
  result: message,
  handler: (context, p) => sendMedia(context, 'video', p.video, p),
});
