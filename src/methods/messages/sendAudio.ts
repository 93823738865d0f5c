import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { optional, text } from '../../api/schema.js';
import { amount, media, mediaErrors, mediaParams, sendMedia } from '../../api/send_media.js';

/** Sends a piece of music (behaviour §4). */
export const sendAudio = defineMethod({
  name: 'sendAudio',
  summary: 'Sends a piece of music.',
  params: z.object({
    ...mediaParams,
    audio: media,
    duration: amount,
    performer: optional(text),
    title: optional(text),
  }),
  errors: mediaErrors,
  handler: (context, p) => sendMedia(context, 'audio', p.audio, p),
});
