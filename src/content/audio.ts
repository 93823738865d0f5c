/** Defines a piece of music. */
import { z } from 'zod';
import {
  durationField,
  fileFields,
  nameFields,
  thumbnailField,
  viewDuration,
  viewFile,
  viewName,
  viewThumbnail,
} from './file_fields.js';
import type { FileKind } from './kind.js';

const audioFile = z
  .strictObject({
    ...fileFields,
    ...nameFields,
    ...durationField,
    performer: z.string().optional(),
    title: z.string().optional(),
    ...thumbnailField,
  })
  .meta({ id: 'Audio', description: 'A piece of music.' });

export const audio: FileKind = {
  typeName: 'Audio',
  sign: '🎵',
  fields: { audio: audioFile.optional() },
  view: (media, forPeople) => ({
    audio: {
      ...viewFile(media, forPeople),
      ...viewDuration(media),
      ...(media.performer === undefined ? {} : { performer: media.performer }),
      ...(media.title === undefined ? {} : { title: media.title }),
      ...viewName(media),
      ...viewThumbnail(media),
    },
  }),
};
