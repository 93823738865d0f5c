/** Defines a sticker: a picture without a caption. A sticker may belong to a bot's sticker set. */
import { z } from 'zod';
import { ruleLimits as limits } from '../rules/limits.js';
import type { Media } from '../store/core/codec.js';
import { fileFields, pixelFields, viewFile, viewPixels } from './file_fields.js';
import type { FileKind } from './kind.js';

export const stickerFile = z
  .strictObject({
    ...fileFields,
    ...pixelFields,
    type: z.literal('regular'),
    is_animated: z.literal(false),
    is_video: z.literal(false),
    emoji: z.string().optional().describe('Emoji that the sticker stands for'),
    set_name: z.string().optional().describe('Name of the set from which the sticker was sent'),
  })
  .meta({ id: 'Sticker', description: 'A picture whose longer side has 512 pixels.' });

export const stickerSet = z
  .strictObject({
    name: z.string(),
    title: z.string(),
    sticker_type: z.literal('regular'),
    stickers: z.array(stickerFile).max(limits.stickers_per_set_max),
  })
  .meta({ id: 'StickerSet', description: 'A set of stickers that a bot made.' });

export const viewSticker = (media: Media, forPeople: boolean) => ({
  ...viewFile(media, forPeople),
  ...viewPixels(media),
  ...({ type: 'regular', is_animated: false, is_video: false } as const),
  ...(media.emoji === undefined ? {} : { emoji: media.emoji }),
  ...(media.set === undefined ? {} : { set_name: media.set }),
});

export const sticker: FileKind = {
  typeName: 'Sticker',
  sign: '🏷',
  fields: { sticker: stickerFile.optional() },
  view: (media, forPeople) => ({ sticker: viewSticker(media, forPeople) }),
};
