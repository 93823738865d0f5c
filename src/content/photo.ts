/** Defines a photo, stored in one size. */
import { z } from 'zod';
import { photoSize, viewPhotoSize } from './file_fields.js';
import type { FileKind } from './kind.js';

export const photo: FileKind = {
  typeName: 'Photo',
  sign: '🖼',
  fields: { photo: z.array(photoSize).optional() },
  view: (media, forPeople) => ({ photo: [viewPhotoSize(media, forPeople)] }),
};
