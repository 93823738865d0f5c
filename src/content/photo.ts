/** A photo, stored in one size. */
import { z } from 'zod';
import { fileFields, pixelFields, viewFile, viewPixels } from './file_fields.js';
import type { FileKind } from './kind.js';

const photoSize = z
  .strictObject({ ...fileFields, ...pixelFields })
  .meta({ id: 'PhotoSize', description: 'A picture.' });

export const photo: FileKind = {
  typeName: 'Photo',
  sign: '🖼',
  fields: { photo: z.array(photoSize).optional() },
  view: (media, forPeople) => ({ photo: [{ ...viewFile(media, forPeople), ...viewPixels(media) }] }),
};
