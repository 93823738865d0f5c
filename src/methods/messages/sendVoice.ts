import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { amount, media, mediaErrors, mediaParams, sendMedia } from '../../api/send_media.js';

/** Sends a voice message (behaviour §4). */
export const sendVoice = defineMethod({
  name: 'sendVoice',
  summary: 'Sends a voice message.',
  params: z.object({ ...mediaParams, voice: media, duration: amount }),
  errors: mediaErrors,
  handler: (context, p) => sendMedia(context, 'voice', p.voice, p),
});
