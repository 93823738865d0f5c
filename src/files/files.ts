/** Stores uploads, creates their identifiers, and reads them back. */

import type { Readable } from 'node:stream';
import { ApiError, fail } from '../errors.js';
import { type Random, systemRandom } from '../random.js';
import type { MediaType } from '../store/core/codec.js';
import { systemTime, type Time } from '../time.js';
import { type BlobStore, newKey } from './blob_store.js';
import { createFileIds, type MediaFile } from './file_id.js';
import { fileLimits as limits } from './limits.js';
import type { Measured } from './measure.js';
import type { Measurer } from './measurer.js';
import { createPictures } from './pictures.js';

export interface Upload {
  readonly filename: string;
  readonly contentType: string;
  readonly bytes: Buffer;
}

/** What the caller says about a file. Used only for properties that the file itself does not contain. */
export interface Described {
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  readonly duration?: number | undefined;
  readonly performer?: string | undefined;
  readonly title?: string | undefined;
  readonly emoji?: string | undefined;
}

export type Files = ReturnType<typeof createFiles>;

export interface StoredFiles {
  /** Records a file that `owner` stores. Throws `too_much_stored`. */
  noteStored(owner: number, key: string, bytes: number): Promise<void>;
  forgetStored(keys: readonly string[]): Promise<void>;
}

export interface FilesOptions {
  readonly blobs: BlobStore & { close?(): void };
  readonly measurer: Measurer;
  readonly pepper: string;
  /** Whether MEDIA_DAYS is set. Files may then have been removed although their ids are valid. */
  readonly expiring?: boolean;
  /**
   * Whether uploads are refused at the moment. Redis is then full and could not store the messages that contain the
   * files.
   */
  readonly refusing?: () => boolean;
  readonly stored: StoredFiles;
  readonly time?: Time;
  readonly random?: Random;
  readonly onError: (error: unknown) => void;
}

const octets = 'application/octet-stream';
const retry_after_s = 2;

const photoType = /^image\/(jpeg|png|gif|webp|bmp|avif|heic|heif)$/;

const mimeType = /^[a-z]+\/[a-z0-9][a-z0-9.+-]{0,80}$/;

const playable = /^(?!image\/svg)(image|video|audio)\//;

/** Keeps the end of a long name, which contains the file type. */
function shortened(name: string): string {
  const points = [...name.replace(/\p{Cc}/gu, '').replace(directions, '')];
  const max = limits.file_name_length_max;
  if (points.length <= max) return points.join('');
  const end = points.length - points.lastIndexOf('.');
  const kept = end <= max / 2 ? end : 0;
  return [...points.slice(0, max - kept), ...points.slice(points.length - kept)].join('');
}

/** Characters that change the direction of a text. For example, `\u202egpj.exe` would look like `exe.jpg`. */
const directions = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const unnamed: readonly MediaType[] = ['photo', 'voice', 'video_note', 'sticker'];

/** The types whose content must be valid. A file of another type is stored even if it cannot be measured. */
const checked: readonly MediaType[] = ['photo', 'video_note', 'sticker'];

/** Refuses a picture that is too large or too narrow for programs to show. Throws `photo_invalid`. */
function checkPhoto({ mime = '', width = 1, height = 1 }: Measured): void {
  const [short, long] = [Math.min(width, height), Math.max(width, height)];
  const isShowable = width + height <= limits.photo_sides_px_max && long <= short * limits.photo_aspect_max;
  if (!photoType.test(mime) || !isShowable) fail('photo_invalid');
}

/** Throws `sticker_type_invalid` or `sticker_sides_invalid`. */
function checkSticker({ mime = '', width = 0, height = 0 }: Measured): void {
  if (mime !== 'image/png' && mime !== 'image/webp') fail('sticker_type_invalid');
  if (Math.max(width, height) !== limits.sticker_side_px || Math.min(width, height) < 1)
    fail('sticker_sides_invalid');
}

const bytesMax: { readonly [T in MediaType]?: number } = {
  video_note: limits.video_note_bytes_max,
  sticker: limits.sticker_bytes_max,
};

/** Throws `file_empty` or `file_too_big`. */
function checkSize(type: MediaType, bytes: number): void {
  if (bytes === 0) fail('file_empty');
  if (bytes > (bytesMax[type] ?? Number.POSITIVE_INFINITY)) fail('file_too_big');
}

function checkContent(type: MediaType, found: Measured, said: Described): void {
  if (type === 'photo') checkPhoto(found);
  if (type === 'sticker') checkSticker(found);
  if (type !== 'video_note') return;
  const { width = 0, height = 0 } = found.width === undefined ? said : found;
  const isSquare = width === height && width <= limits.video_note_side_px_max;
  if (!isSquare || !found.mime?.startsWith('video/')) fail('video_note_invalid');
}

/**
 * Returns the MIME type of a file. Uses the file's content if it shows a type, and otherwise the type that the client
 * gave. Media that the application plays never get a type that a browser would run as a page. A file with only sound
 * gets an audio type, even if its format could also contain a video.
 */
function mimeOf(type: MediaType, upload: Upload, found: Measured): string {
  const mime = found.mime ?? (mimeType.test(upload.contentType) ? upload.contentType : octets);
  if (type === 'document') return mime;
  if (!playable.test(mime)) return octets;
  const isSound = (type === 'audio' || type === 'voice') && !found.moving;
  return isSound ? mime.replace(/^video\//, 'audio/') : mime;
}

function describe(type: MediaType, upload: Upload, found: Measured, said: Described): Omit<MediaFile, 'key'> {
  const [width, height] = [found.width ?? said.width, found.height ?? said.height];
  const duration = found.duration ?? said.duration;
  const performer = said.performer || found.performer;
  const title = said.title || found.title;
  const timed = type !== 'photo' && type !== 'document' && type !== 'sticker';
  const framed = type !== 'audio' && type !== 'voice';
  const name = unnamed.includes(type) ? '' : shortened(upload.filename);
  return {
    type,
    size: upload.bytes.length,
    mime: mimeOf(type, upload, found),
    ...(name && { name }),
    ...(framed && width && height && { width, height }),
    ...(timed && duration && { duration }),
    ...(type === 'sticker' && said.emoji && { emoji: said.emoji }),
    ...(type === 'audio' && performer && { performer }),
    ...(type === 'audio' && title && { title }),
  };
}

const cleanedOf = (given: Upload, { cleaned }: Measured): Upload =>
  cleaned === undefined
    ? given
    : { ...given, bytes: Buffer.from(cleaned.buffer, cleaned.byteOffset, cleaned.byteLength) };

export function createFiles({
  blobs,
  measurer,
  pepper,
  expiring = false,
  refusing,
  stored,
  time = systemTime,
  random = systemRandom,
  onError,
}: FilesOptions) {
  const reach = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      onError(error);
      return fail('unavailable', { retry_after: retry_after_s });
    });

  /**
   * Deletes a stored file and its record in Postgres. Returns false if that fails. The file then still counts as
   * stored, and the sweep of old files tries again.
   */
  async function remove(key: string): Promise<boolean> {
    try {
      await blobs.remove(key);
      await stored.forgetStored([key]);
      return true;
    } catch (error) {
      onError(error);
      return false;
    }
  }

  /** Stores bytes as a file of `owner` and returns its key. Throws `too_much_stored` or `unavailable`. */
  async function write(owner: number, bytes: Buffer): Promise<string> {
    const key = newKey(random);
    await stored.noteStored(owner, key, bytes.length);
    try {
      await reach(blobs.put(key, bytes));
    } catch (error) {
      await remove(key);
      throw error;
    }
    return key;
  }

  /** Removes a file that `keep` has stored. Call this only if no message uses the file. Never throws. */
  async function discard({ key, thumb }: MediaFile): Promise<void> {
    if (key !== undefined) await remove(key);
    if (thumb !== undefined) await remove(thumb.key);
  }

  const pictures = createPictures(onError, time);

  return {
    ...createFileIds(pepper),
    /**
     * Measures an upload and stores it as a file of `owner`, with a thumbnail made from `thumbnail`. A photo is stored
     * without its metadata. Throws `file_empty`, `file_too_big`, `photo_invalid`, `video_note_invalid`,
     * `sticker_type_invalid`, `sticker_sides_invalid`, `too_many_requests`, `too_much_stored`, `unavailable`, and for a
     * thumbnail also the errors of `Pictures.make`.
     */
    async keep(
      owner: number,
      type: MediaType,
      given: Upload,
      said: Described = {},
      thumbnail?: Upload,
    ): Promise<MediaFile> {
      checkSize(type, given.bytes.length);
      if (refusing?.()) fail('too_many_requests', { retry_after: 1 });
      const found = await measurer.measure(owner, given.bytes, type === 'photo');
      // Asks the client to try again. The file may be valid, but was not measured, because earlier files took too long.
      if (checked.includes(type) && found.late) fail('too_many_requests', { retry_after: retry_after_s });
      checkContent(type, found, said);
      const upload = cleanedOf(given, found);
      const [made] = thumbnail ? await pictures.make(owner, 'thumbnail', thumbnail.bytes) : [];
      const file = { ...describe(type, upload, found, said), key: await write(owner, upload.bytes) };
      if (made === undefined) return file;
      try {
        const { bytes, width, height } = made;
        return { ...file, thumb: { key: await write(owner, bytes), size: bytes.length, width, height } };
      } catch (error) {
        await discard(file);
        throw error;
      }
    },
    /**
     * Returns the bytes from `start` to `end`, both inclusive and within the file. Returns null if the file is not
     * stored here. Throws `unavailable`.
     */
    async open({ key }: MediaFile, start: number, end: number): Promise<Readable | null> {
      return key === undefined ? null : reach(blobs.open(key, start, end));
    },
    /**
     * Throws `wrong_file_id` if the file was removed after MEDIA_DAYS, and `unavailable` if the storage does not
     * answer.
     */
    stillThere({ key }: MediaFile): void | Promise<void> {
      if (!expiring || key === undefined) return;
      return reach(blobs.size(key)).then((size) => (size === null ? fail('wrong_file_id') : undefined));
    },
    list: ((after, limit) => blobs.list(after, limit)) satisfies BlobStore['list'],
    discard,
    write,
    pictures,
    /** Stores bytes under a key from `newKey`. Throws `unavailable`. */
    put: (key: string, bytes: Buffer) => reach(blobs.put(key, bytes)),
    remove,
    async close() {
      await measurer.close();
      blobs.close?.();
    },
  };
}

/**
 * Returns whether the error means that the call was refused. If so, no message uses the files that the call uploaded.
 */
export const wasRefused = (error: unknown): boolean => error instanceof ApiError && error.code < 500;
