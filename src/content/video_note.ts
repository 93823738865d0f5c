/** Defines a short square video, shown as a circle. It has no caption. */
import { z } from 'zod';
import {
  durationField,
  fileFields,
  thumbnailField,
  viewDuration,
  viewFile,
  viewThumbnail,
} from './file_fields.js';
import type { FileKind } from './kind.js';

const videoNoteFile = z
  .strictObject({
    ...fileFields,
    length: z.int().min(0).describe('Width and height in pixels'),
    ...durationField,
    ...thumbnailField,
  })
  .meta({ id: 'VideoNote', description: 'A square video, shown as a circle.' });

export const videoNote: FileKind = {
  typeName: 'VideoNote',
  sign: '🎥',
  fields: { video_note: videoNoteFile.optional() },
  view: (media, forPeople) => ({
    video_note: {
      ...viewFile(media, forPeople),
      length: media.width ?? 0,
      ...viewDuration(media),
      ...viewThumbnail(media),
    },
  }),
};
