import { z } from 'zod';
import { defineMethod } from '../../api/method.js';
import { media, mediaErrors, mediaParams, sendMedia } from '../../api/send_media.js';

/** Sends a file of any kind (behaviour §4). */
export const sendDocument = defineMethod({
  name: 'sendDocument',
  summary: 'Sends a file of any kind.',
  params: z.object({ ...mediaParams, document: media }),
  errors: mediaErrors,
  handler: (context, p) => sendMedia(context, 'document', p.document, p),
});
