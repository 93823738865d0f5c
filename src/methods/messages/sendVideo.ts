import { z } from 'zod';
import { media, mediaErrors, mediaParams, movingParams, sendMedia } from '../../actions/send_media.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';

export const sendVideo = defineMethod({
  name: 'sendVideo',
  effect: 'grow',
  summary: 'Sends a video.',
  params: z.object({ ...mediaParams, video: media, ...movingParams }),
  errors: mediaErrors,
  result: message,
  handler: (context, p) => sendMedia(context, 'video', p.video, p),
});
