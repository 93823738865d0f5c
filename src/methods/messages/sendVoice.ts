import { z } from 'zod';
import { amount, media, mediaErrors, mediaParams, sendMedia } from '../../actions/send_media.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';

export const sendVoice = defineMethod({
  name: 'sendVoice',
  effect: 'grow',
  summary: 'Sends a voice message.',
  params: z.object({ ...mediaParams, voice: media, duration: amount }),
  result: message,
  errors: mediaErrors,
  handler: (context, p) => sendMedia(context, 'voice', p.voice, p),
});
