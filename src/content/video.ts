/** Defines a video. */
import { z } from 'zod';
import type { Media } from '../store/core/codec.js';
import {
  durationField,
  fileFields,
  nameFields,
  pixelFields,
  thumbnailField,
  viewDuration,
  viewFile,
  viewName,
  viewPixels,
  viewThumbnail,
} from './file_fields.js';
import type { FileKind } from './kind.js';

export const videoFile = z
  .strictObject({ ...fileFields, ...pixelFields, ...nameFields, ...durationField, ...thumbnailField })
  .meta({ id: 'Video', description: 'A video or an animation.' });

export const viewVideo = (media: Media, forPeople: boolean) => ({
  ...viewFile(media, forPeople),
  ...viewPixels(media),
  ...viewDuration(media),
  ...viewName(media),
  ...viewThumbnail(media),
});

export const video: FileKind = {
  typeName: 'Video',
  sign: '🎬',
  fields: { video: videoFile.optional() },
  view: (media, forPeople) => ({ video: viewVideo(media, forPeople) }),
};
