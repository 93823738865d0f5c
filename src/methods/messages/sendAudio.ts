import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { message } from '../../api/results.js';
import { optional, text } from '../../api/schema.js';
import { amount, media, mediaErrors, mediaParams, sendMedia } from '../../api/send_media.js';

/** Sends a piece of music (behaviour §4). */
export const sendAudio = defineMethod({
  name: 'sendAudio',
  summary: 'Sends an audio file.',
  params: z.object({
    ...mediaParams,
    audio: media,
    duration: amount,
    performer: optional(text).describe('Who plays'),
    title: optional(text).describe('Of the piece'),
  }),
  errors: mediaErrors,
  result: message,
  handler: (context, p) => sendMedia(context, 'audio', p.audio, p),
});
