/** The wire fields that several kinds of files share. */
import { z } from 'zod';
import type { Media } from '../store/core/codec.js';

export const fileFields = {
  file_id: z.string().describe('Id with which the file can be sent again'),
  file_unique_id: z
    .string()
    .describe('Id that is equal for equal files, but does not give access to the file'),
  file_size: z.int().min(0).optional().describe('bytes'),
  url: z.string().optional().describe('URL of media that were sent by URL. Only in the application API'),
};

export const pixelFields = {
  width: z.int().min(0).describe('pixels; 0 when unknown'),
  height: z.int().min(0).describe('pixels; 0 when unknown'),
};

export const photoSize = z
  .strictObject({ ...fileFields, ...pixelFields })
  .meta({ id: 'PhotoSize', description: 'A picture.' });

export const thumbnailField = {
  thumbnail: photoSize.optional().describe('Small preview picture of the file'),
};

export const nameFields = { file_name: z.string().optional(), mime_type: z.string().optional() };

export const durationField = { duration: z.int().min(0).describe('seconds; 0 when unknown') };

/**
 * Adds the field `url` for media that is stored by URL. Only people get this field, because they need the URL to load
 * the file. A bot already knows the URL that it sent.
 */
export const viewFile = ({ id, unique, size, url }: Media, forPeople: boolean) => ({
  file_id: id,
  file_unique_id: unique,
  ...(forPeople && url !== undefined ? { url } : {}),
  ...(size === undefined ? {} : { file_size: size }),
});

export const viewPixels = ({ width = 0, height = 0 }: Media) => ({ width, height });

export const viewPhotoSize = (media: Media, forPeople: boolean) => ({
  ...viewFile(media, forPeople),
  ...viewPixels(media),
});

export const viewThumbnail = ({ thumb }: Media) =>
  thumb === undefined ? {} : { thumbnail: viewPhotoSize(thumb, false) };

export const viewDuration = ({ duration = 0 }: Media) => ({ duration });

export const viewName = ({ name, mime }: Media) => ({
  ...(name === undefined ? {} : { file_name: name }),
  ...(mime === undefined ? {} : { mime_type: mime }),
});
