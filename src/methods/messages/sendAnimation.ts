import { z } from 'zod';
import { media, mediaErrors, mediaParams, movingParams, sendMedia } from '../../actions/send_media.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';

export const sendAnimation = defineMethod({
  name: 'sendAnimation',
  effect: 'grow',
  summary: 'Sends an animation: a GIF or a silent video.',
  params: z.object({ ...mediaParams, animation: media, ...movingParams }),
  errors: mediaErrors,
  result: message,
  handler: (context, p) => sendMedia(context, 'animation', p.animation, p),
});
