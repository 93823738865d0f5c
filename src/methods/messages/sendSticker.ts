import { z } from 'zod';
import { stickerErrors } from '../../actions/media.js';
import { media, mediaErrors, sendMedia } from '../../actions/send_media.js';
import { objectParams } from '../../actions/send_object.js';
import { stickerEmoji } from '../../actions/sticker_sets.js';
import { defineMethod } from '../../server/method.js';
import { message } from '../../wire/results.js';
import { optional } from '../../wire/schema.js';

/**
 * Sends a sticker, which has no caption. If a sticker is in a set, its `file_id` contains the sticker's emoji and the
 * name of the set.
 */
export const sendSticker = defineMethod({
  name: 'sendSticker',
  effect: 'grow',
  summary: 'Sends a sticker.',
  params: z.object({
    ...objectParams,
    sticker: media.describe(
      'An uploaded part, `attach://<name>` of an uploaded part, an HTTPS URL, or a `file_id`. A PNG or WebP of up to 512 KiB, one side of which has 512 pixels and the other at most 512',
    ),
    emoji: optional(stickerEmoji).describe('Emoji of a sticker that is not sent by `file_id`'),
  }),
  result: message,
  errors: [...mediaErrors, ...stickerErrors, 'sticker_emoji_invalid'],
  handler: (context, p) => sendMedia(context, 'sticker', p.sticker, p),
});
