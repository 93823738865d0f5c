/**
 * Identifiers of files. A `file_id` holds the encrypted description of a file, so that sending and downloading need no
 * database. Only the installation's secret can make one, and one reveals nothing about another.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync } from 'node:crypto';
import { fail } from '../errors.js';
import { limits } from '../limits.js';
import { type Media, type MediaType, mediaTypes, pack, unpack } from '../store/core/codec.js';

/** A file that was uploaded (`key`) or is only referred to (`url`). Unknown fields are absent. */
export interface MediaFile {
  readonly type: MediaType;
  /** Key in the blob store. */
  readonly key?: string;
  /** https URL, never fetched. */
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
}

export interface FileIds {
  /** Equal for equal descriptions. URL-safe, mostly under 200 characters. */
  idOf(file: MediaFile): string;
  /** 16 characters, equal for equal bytes or URLs. Gives no access to the file. */
  uniqueIdOf(file: MediaFile): string;
  /** Error: `wrong_file_id` for a text that `idOf` did not make. */
  fileOf(id: string): MediaFile;
}

const format = Buffer.from([1]);
const nonce_bytes = 12;
const tag_bytes = 16;
/** Base64 length of the longest URL with a name, a title and a performer. */
const id_length_max = 4 * (limits.media_url_length_max + 4 * limits.file_name_length_max);

type Fields = [
  /** index in `mediaTypes`, which must only be appended to */
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
];

function toFields(file: MediaFile): Buffer {
  const place = file.key === undefined ? (file.url ?? '') : Buffer.from(file.key, 'hex');
  const fields: unknown[] = [mediaTypes.indexOf(file.type), place, file.size ?? 0, file.mime ?? ''];
  fields.push(file.name ?? '', file.width ?? 0, file.height ?? 0, file.duration ?? 0);
  fields.push(file.performer ?? '', file.title ?? '');
  while (fields.at(-1) === '' || fields.at(-1) === 0) fields.pop();
  return pack(fields);
}

function fromFields(bytes: Buffer): MediaFile {
  const [type, place, size, mime, name, width, height, duration, performer, title] = unpack<Fields>(bytes);
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
  };
}

/**
 * AES-256-GCM with a nonce derived from the plaintext by HMAC. Equal files get equal identifiers. Two different
 * plaintexts share a nonce no more often than with random nonces.
 */
export function createFileIds(pepper: string): FileIds {
  const secret = Buffer.from(hkdfSync('sha256', pepper, '', 'petrel file identifiers 1', 64));
  const [sealKey, nonceKey] = [secret.subarray(0, 32), secret.subarray(32)];
  return {
    idOf(file) {
      const plain = toFields(file);
      const nonce = createHmac('sha256', nonceKey).update(plain).digest().subarray(0, nonce_bytes);
      const cipher = createCipheriv('aes-256-gcm', sealKey, nonce).setAAD(format);
      const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([format, nonce, sealed, cipher.getAuthTag()]).toString('base64url');
    },
    uniqueIdOf: ({ key, url }) =>
      createHash('sha256')
        .update(key ?? url ?? '')
        .digest()
        .toString('base64url', 0, 12),
    fileOf(id) {
      if (id.length > id_length_max) fail('wrong_file_id');
      const bytes = Buffer.from(id, 'base64url');
      const start = format.length + nonce_bytes;
      const end = bytes.length - tag_bytes;
      // Other spellings of the same base64 are refused, so that a file has one identifier.
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

/** The media in a message's view. */
export function mediaOf(ids: FileIds, file: MediaFile, spoiler = false): Media {
  const { key: _, ...shown } = file;
  return {
    ...shown,
    id: ids.idOf(file),
    unique: ids.uniqueIdOf(file),
    ...(spoiler && { spoiler }),
  };
}
