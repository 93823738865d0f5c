import { z } from 'zod';
import { amount, media, mediaErrors, sendMedia, thumbnail } from '../../actions/send_media.js';
import { objectParams } from '../../actions/send_object.js';
import { fileLimits as limits } from '../../files/limits.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';

const bytes = limits.video_note_bytes_max;
const side = limits.video_note_side_px_max;

/** Sends a video note, which has no caption. */
export const sendVideoNote = defineMethod({
  name: 'sendVideoNote',
  effect: 'grow',
  summary: 'Sends a video note: a square video, shown as a circle.',
  params: z.object({
    ...objectParams,
    video_note: media.describe(
      `An uploaded part, \`attach://<name>\` of an uploaded part, or a \`file_id\`. A square video of up to ${side} pixels a side and ${bytes} bytes`,
    ),
    duration: amount,
    length: amount,
    thumbnail,
  }),
  result: message,
  errors: [...mediaErrors, 'video_note_invalid', 'file_too_big'],
  handler: (context, p) =>
    sendMedia(context, 'video_note', p.video_note, { ...p, width: p.length, height: p.length }),
});
