/**
 * Encodes and decodes file identifiers. A `file_id` contains the encrypted description of a file, so that sending and
 * downloading the file need no database. Only the installation can make a `file_id`, because the encryption needs the
 * installation's secret. One `file_id` reveals nothing about another.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync } from 'node:crypto';
import { fail } from '../errors.js';
import { ruleLimits } from '../rules/limits.js';
import { type Media, type MediaType, mediaTypes, pack, unpack } from '../store/core/codec.js';
import { fileLimits as limits } from './limits.js';

/** A file that was uploaded (has `key`) or that is stored as a URL (has `url`). Unknown fields are absent. */
export interface MediaFile {
  readonly type: MediaType;
  readonly key?: string;
  /** An HTTPS URL, which the server never fetches. */
  readonly url?: string;
  /** bytes */
  readonly size?: number;
  readonly mime?: string;
  readonly name?: string;
  /** pixels */
  readonly width?: number;
  readonly height?: number;
  /** whole seconds */
  readonly duration?: number;
  readonly performer?: string;
  readonly title?: string;
  readonly thumb?: ThumbnailFile;
  /** The emoji of a sticker, and the name of its set. */
  readonly emoji?: string;
  readonly set?: string;
}

export interface ThumbnailFile {
  readonly key: string;
  /** bytes */
  readonly size: number;
  /** pixels */
  readonly width: number;
  readonly height: number;
}

export type FileIds = ReturnType<typeof createFileIds>;

const format = Buffer.from([1]);
const nonce_bytes = 12;
const tag_bytes = 16;
/** The length of the longest `file_id` in base64. It contains the longest URL, name, title and performer. */
const id_length_max = 4 * (ruleLimits.media_url_length_max + 4 * limits.file_name_length_max);

type Fields = [
  /** The index of the file's type in `mediaTypes`. New types must be added at the end of that list. */
  type: number,
  place: Buffer | string,
  size?: number,
  mime?: string,
  name?: string,
  width?: number,
  height?: number,
  duration?: number,
  performer?: string,
  title?: string,
  thumb?: [key: Buffer, size: number, width: number, height: number] | 0,
  emoji?: string,
  set?: string,
];

function toFields(file: MediaFile): Buffer {
  const place = file.key === undefined ? (file.url ?? '') : Buffer.from(file.key, 'hex');
  const fields: unknown[] = [mediaTypes.indexOf(file.type), place, file.size ?? 0, file.mime ?? ''];
  fields.push(file.name ?? '', file.width ?? 0, file.height ?? 0, file.duration ?? 0);
  fields.push(file.performer ?? '', file.title ?? '');
  const { thumb } = file;
  fields.push(thumb ? [Buffer.from(thumb.key, 'hex'), thumb.size, thumb.width, thumb.height] : 0);
  fields.push(file.emoji ?? '', file.set ?? '');
  while (fields.at(-1) === '' || fields.at(-1) === 0) fields.pop();
  return pack(fields);
}

function fromFields(bytes: Buffer): MediaFile {
  const [type, place, size, mime, name, width, height, duration, performer, title, thumb, emoji, set] =
    unpack<Fields>(bytes);
  const at = typeof place === 'string' ? { url: place } : { key: Buffer.from(place).toString('hex') };
  return {
    type: mediaTypes[type] as MediaType,
    ...at,
    ...(size && { size }),
    ...(mime && { mime }),
    ...(name && { name }),
    ...(width && { width }),
    ...(height && { height }),
    ...(duration && { duration }),
    ...(performer && { performer }),
    ...(title && { title }),
    ...(thumb && { thumb: thumbnailOf(thumb) }),
    ...(emoji && { emoji }),
    ...(set && { set }),
  };
}

const thumbnailOf = ([key, size, width, height]: Exclude<Fields[10], 0 | undefined>): ThumbnailFile => ({
  key: Buffer.from(key).toString('hex'),
  size,
  width,
  height,
});

/**
 * Creates the codec. It encrypts with AES-256-GCM. HMAC derives the nonce from the plaintext, so that equal files get
 * equal identifiers. Nonces of different plaintexts collide as rarely as random nonces.
 */
export function createFileIds(pepper: string) {
  const secret = Buffer.from(hkdfSync('sha256', pepper, '', 'petrel file identifiers 1', 64));
  const [sealKey, nonceKey] = [secret.subarray(0, 32), secret.subarray(32)];
  return {
    /**
     * Returns a file's `file_id`, which is URL-safe and mostly shorter than 200 characters. Equal descriptions have
     * equal ids.
     */
    idOf(file: MediaFile): string {
      const plain = toFields(file);
      const nonce = createHmac('sha256', nonceKey).update(plain).digest().subarray(0, nonce_bytes);
      const cipher = createCipheriv('aes-256-gcm', sealKey, nonce).setAAD(format);
      const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([format, nonce, sealed, cipher.getAuthTag()]).toString('base64url');
    },
    /**
     * Returns a file's `file_unique_id`: 16 characters that are equal for equal keys or URLs. It gives no access to the
     * file.
     */
    uniqueIdOf: ({ key, url }: MediaFile) =>
      createHash('sha256')
        .update(key ?? url ?? '')
        .digest()
        .toString('base64url', 0, 12),
    /** Decodes a `file_id`. Throws `wrong_file_id` for a text that `idOf` did not make. */
    fileOf(id: string): MediaFile {
      if (id.length > id_length_max) fail('wrong_file_id');
      const bytes = Buffer.from(id, 'base64url');
      const start = format.length + nonce_bytes;
      const end = bytes.length - tag_bytes;
      // Base64 may spell the same bytes in several ways. Accepts only one spelling, so that each file has only one
      // identifier.
      if (end <= start || bytes[0] !== format[0] || bytes.toString('base64url') !== id) fail('wrong_file_id');
      try {
        const decipher = createDecipheriv('aes-256-gcm', sealKey, bytes.subarray(1, start))
          .setAAD(format)
          .setAuthTag(bytes.subarray(end));
        return fromFields(Buffer.concat([decipher.update(bytes.subarray(start, end)), decipher.final()]));
      } catch {
        return fail('wrong_file_id');
      }
    },
  };
}

export function mediaOf(ids: FileIds, file: MediaFile, spoiler = false): Media {
  const { key: _, thumb, ...shown } = file;
  return {
    ...shown,
    id: ids.idOf(file),
    unique: ids.uniqueIdOf(file),
    ...(thumb && { thumb: mediaOf(ids, { type: 'photo', mime: 'image/jpeg', ...thumb }) }),
    ...(spoiler && { spoiler }),
  };
}
