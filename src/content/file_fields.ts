/** Fields that several kinds of files share on the wire. */
import { z } from 'zod';
import type { Media } from '../store/core/codec.js';

export const fileFields = {
  file_id: z.string().describe('Sends the same file again'),
  file_unique_id: z.string().describe('Equal for equal files. Gives no access to the file'),
  file_size: z.int().min(0).optional().describe('bytes'),
  url: z.string().optional().describe('URL of media stored by reference. Only in the application API'),
};

export const pixelFields = {
  width: z.int().min(0).describe('pixels; 0 when unknown'),
  height: z.int().min(0).describe('pixels; 0 when unknown'),
};

export const nameFields = { file_name: z.string().optional(), mime_type: z.string().optional() };

export const durationField = { duration: z.int().min(0).describe('seconds; 0 when unknown') };

/** The `url` field of media stored by URL. A bot knows the URL it sent; people need it to load the file. */
export const viewFile = ({ id, unique, size, url }: Media, forPeople: boolean) => ({
  file_id: id,
  file_unique_id: unique,
  ...(forPeople && url !== undefined ? { url } : {}),
  ...(size === undefined ? {} : { file_size: size }),
});

/** Sizes are 0 when unknown, which happens for media stored by URL. */
export const viewPixels = ({ width = 0, height = 0 }: Media) => ({ width, height });

export const viewDuration = ({ duration = 0 }: Media) => ({ duration });

export const viewName = ({ name, mime }: Media) => ({
  ...(name === undefined ? {} : { file_name: name }),
  ...(mime === undefined ? {} : { mime_type: mime }),
});
