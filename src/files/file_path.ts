/**
 * Builds and parses the paths from which bots download files: `<folder>/<file_id>.<ending>` below `/file/bot<token>/`.
 */
import { fail } from '../errors.js';
import type { MediaType } from '../store/core/codec.js';
import type { FileIds, MediaFile } from './file_id.js';

const folders: Readonly<Record<MediaType, string>> = {
  photo: 'photos',
  video: 'videos',
  audio: 'music',
  document: 'documents',
  animation: 'animations',
  voice: 'voice',
  video_note: 'videonotes',
  sticker: 'stickers',
};

const endings: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'video/mp4': 'mp4',
  'video/webm': 'webm',
  'audio/mpeg': 'mp3',
  'audio/ogg': 'ogg',
  'application/pdf': 'pdf',
};

function endingOf({ name, mime }: MediaFile): string {
  const own = /\.([A-Za-z0-9]{1,8})$/.exec(name ?? '')?.[1]?.toLowerCase();
  const ending = own ?? endings[mime ?? ''];
  return ending === undefined ? '' : `.${ending}`;
}

/**
 * Returns the download path of a file, or undefined if the file is not stored here. The path contains the encrypted
 * identifier and cannot be guessed. Any bot that knows the path may read the file with its own token.
 */
export function filePath(ids: FileIds, file: MediaFile): string | undefined {
  return file.key === undefined ? undefined : `${folders[file.type]}/${ids.idOf(file)}${endingOf(file)}`;
}

/** Returns a file as `getFile` shows it. */
export function viewFileInfo(ids: FileIds, file: MediaFile) {
  const path = filePath(ids, file);
  return {
    file_id: ids.idOf(file),
    file_unique_id: ids.uniqueIdOf(file),
    ...(file.size === undefined ? {} : { file_size: file.size }),
    ...(path === undefined ? {} : { file_path: path }),
  };
}

/** Returns the file at a download path. Throws `not_found` for a text that `filePath` did not make. */
export function fileAtPath(ids: FileIds, path: string): MediaFile {
  const id = /^[a-z]+\/([\w-]+)(?:\.[a-z0-9]+)?$/.exec(path)?.[1];
  if (id === undefined) return fail('not_found');
  let file: MediaFile;
  try {
    file = ids.fileOf(id);
  } catch {
    return fail('not_found');
  }
  return filePath(ids, file) === path ? file : fail('not_found');
}
