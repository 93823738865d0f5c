import { z } from 'zod';
import { amount, media, mediaErrors, mediaParams, sendMedia, thumbnail } from '../../actions/send_media.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';
import { optional, text } from '../../wire/schema.js';

export const sendAudio = defineMethod({
  name: 'sendAudio',
  effect: 'grow',
  summary: 'Sends an audio file.',
  params: z.object({
    ...mediaParams,
    audio: media,
    duration: amount,
    performer: optional(text).describe('Performer of the piece'),
    title: optional(text).describe('Title of the piece'),
    thumbnail,
  }),
  errors: mediaErrors,
  result: message,
  handler: (context, p) => sendMedia(context, 'audio', p.audio, p),
});
