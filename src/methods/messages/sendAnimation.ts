import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { boolean, optional } from '../../api/schema.js';
import { amount, media, mediaErrors, mediaParams, sendMedia } from '../../api/send_media.js';

/** Sends an animation: a GIF, or a video without sound (behaviour §4). */
export const sendAnimation = defineMethod({
  name: 'sendAnimation',
  summary: 'Sends an animation: a GIF, or a video without sound.',
  params: z.object({
    ...mediaParams,
    animation: media,
    width: amount,
    height: amount,
    duration: amount,
    has_spoiler: optional(boolean),
  }),
  errors: mediaErrors,
  handler: (context, p) => sendMedia(context, 'animation', p.animation, p),
});
