/** Stores uploads, identifies files, and reads them back. */
import type { Readable } from 'node:stream';
import { ApiError, fail } from '../errors.js';
import { limits } from '../limits.js';
import type { MediaType } from '../store/core/codec.js';
import { type BlobStore, newKey } from './blob_store.js';
import { createFileIds, type FileIds, type MediaFile } from './file_id.js';
import type { Measured } from './measure.js';
import type { Measurer } from './measurer.js';
import { createPictures, type Pictures } from './pictures.js';

export interface Upload {
  /** Base name as sent. */
  readonly filename: string;
  /** As sent, in lower case. */
  readonly contentType: string;
  readonly bytes: Buffer;
}

/** Metadata given by the caller. Used where the content itself does not tell. */
export interface Described {
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  readonly duration?: number | undefined;
  readonly performer?: string | undefined;
  readonly title?: string | undefined;
}

export interface Files extends FileIds {
  /**
   * Measures an upload and stores it as a file of `owner`. Errors: `file_empty`, `photo_invalid`, `too_many_requests`,
   * `too_much_stored`, `unavailable`.
   */
  keep(owner: number, type: MediaType, upload: Upload, said?: Described): Promise<MediaFile>;
  /**
   * Bytes `start` to `end`, both inclusive and within the file; null for a file that is not stored here. Error:
   * `unavailable`.
   */
  open(file: MediaFile, start: number, end: number): Promise<Readable | null>;
  /**
   * Refuses a file that was removed because of its age, when MEDIA_DAYS is set. Errors: `wrong_file_id`, `unavailable`.
   */
  stillThere(file: MediaFile): void | Promise<void>;
  /** Stored files after a key, in the order of keys. */
  readonly list: BlobStore['list'];
  /** Removes a file that `keep` stored but no message uses. Never fails. */
  discard(file: MediaFile): Promise<void>;
  /** Makes pictures of bots; `put` stores them. */
  readonly pictures: Pictures;
  /** Stores bytes under a key from `newKey`. Error: `unavailable`. */
  put(key: string, bytes: Buffer): Promise<void>;
  /** Removes the file of a key; false when that failed. */
  remove(key: string): Promise<boolean>;
  close(): Promise<void>;
}

/** Counts stored bytes by owner. `store/` implements it. */
export interface StoredFiles {
  /** Error: `too_much_stored`. */
  noteStored(owner: number, key: string, bytes: number): Promise<void>;
  forgetStored(keys: readonly string[]): Promise<void>;
}

export interface FilesOptions {
  readonly blobs: BlobStore & { close?(): void };
  readonly measurer: Measurer;
  /** Setting TOKEN_PEPPER. */
  readonly pepper: string;
  /** Setting MEDIA_DAYS is on, so a known file may be gone. */
  readonly expiring?: boolean;
  /** Whether uploads are refused now, because Redis could not store their messages. */
  readonly refusing?: () => boolean;
  readonly stored: StoredFiles;
  /** Receives errors of the storage. */
  readonly onError: (error: unknown) => void;
}

const octets = 'application/octet-stream';
const retry_after_s = 2;

/** Image types that browsers can show. */
const photoType = /^image\/(jpeg|png|gif|webp|bmp|avif|heic|heif)$/;

const mimeType = /^[a-z]+\/[a-z0-9][a-z0-9.+-]{0,80}$/;

/** Keeps the end of a long name, because it holds the file type. */
function shortened(name: string): string {
  const points = [...name.replace(/\p{Cc}/gu, '')];
  const max = limits.file_name_length_max;
  if (points.length <= max) return points.join('');
  const end = points.length - points.lastIndexOf('.');
  const kept = end <= max / 2 ? end : 0;
  return [...points.slice(0, max - kept), ...points.slice(points.length - kept)].join('');
}

function describe(type: MediaType, upload: Upload, found: Measured, said: Described): Omit<MediaFile, 'key'> {
  const declared = mimeType.test(upload.contentType) ? upload.contentType : octets;
  const [width, height] = [found.width ?? said.width, found.height ?? said.height];
  const duration = found.duration ?? said.duration;
  const performer = said.performer || found.performer;
  const title = said.title || found.title;
  const timed = type !== 'photo' && type !== 'document';
  const framed = type !== 'audio' && type !== 'voice';
  const name = type === 'photo' || type === 'voice' ? '' : shortened(upload.filename);
  return {
    type,
    size: upload.bytes.length,
    mime: found.mime ?? declared,
    ...(name && { name }),
    ...(framed && width && height && { width, height }),
    ...(timed && duration && { duration }),
    ...(type === 'audio' && performer && { performer }),
    ...(type === 'audio' && title && { title }),
  };
}

export function createFiles({
  blobs,
  measurer,
  pepper,
  expiring = false,
  refusing,
  stored,
  onError,
}: FilesOptions): Files {
  async function reach<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      onError(error);
      return fail('unavailable', { retry_after: retry_after_s });
    }
  }

  /** If removing the file or its count fails, it still counts, and the sweep of old files tries again. */
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

  return {
    ...createFileIds(pepper),
    async keep(owner, type, upload, said = {}) {
      if (upload.bytes.length === 0) fail('file_empty');
      if (refusing?.()) fail('too_many_requests', { retry_after: 1 });
      const found = await measurer.measure(upload.bytes);
      // Nobody measured the file, so it may be a valid photo. Ask the client to try again.
      if (type === 'photo' && found.late) fail('too_many_requests', { retry_after: retry_after_s });
      if (type === 'photo' && !photoType.test(found.mime ?? '')) fail('photo_invalid');
      const key = newKey();
      await stored.noteStored(owner, key, upload.bytes.length);
      try {
        await blobs.put(key, upload.bytes);
      } catch (error) {
        onError(error);
        await remove(key);
        return fail('unavailable', { retry_after: retry_after_s });
      }
      return { ...describe(type, upload, found, said), key };
    },
    async open({ key }, start, end) {
      return key === undefined ? null : reach(blobs.open(key, start, end));
    },
    stillThere({ key }) {
      if (!expiring || key === undefined) return;
      return reach(blobs.size(key)).then((size) => (size === null ? fail('wrong_file_id') : undefined));
    },
    list: (after, limit) => blobs.list(after, limit),
    async discard({ key }) {
      if (key !== undefined) await remove(key);
    },
    pictures: createPictures(onError),
    put: (key, bytes) => reach(blobs.put(key, bytes)),
    remove,
    async close() {
      await measurer.close();
      blobs.close?.();
    },
  };
}

/** True when the call was refused, so that nothing can refer to the file it brought. */
export const wasRefused = (error: unknown): boolean => error instanceof ApiError && error.code < 500;
