import { z } from 'zod';
import { media, mediaErrors, mediaParams, sendMedia, thumbnail } from '../../actions/send_media.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';

export const sendDocument = defineMethod({
  name: 'sendDocument',
  effect: 'grow',
  summary: 'Sends a file of any kind.',
  params: z.object({ ...mediaParams, document: media, thumbnail }),
  result: message,
  errors: mediaErrors,
  handler: (context, p) => sendMedia(context, 'document', p.document, p),
});
