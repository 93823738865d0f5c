/** Determines a picture's format from its bytes, before anything decodes them. */
import { fail } from '../errors.js';

export type PictureForm = 'png' | 'jpeg' | 'webp';

const png_head_bytes = 8;
/** The bytes of a PNG chunk in addition to its data: length, type and checksum. */
const png_chunk_frame_bytes = 12;
const pngHead = Buffer.from('89504e470d0a1a0a', 'hex');

/**
 * Checks that a PNG is not animated and that nothing follows its last chunk. In an animated PNG, the animation chunk
 * comes before the pixels.
 */
function checkPng(bytes: Buffer): void {
  for (let at = png_head_bytes; at + png_chunk_frame_bytes <= bytes.length; ) {
    const end = at + png_chunk_frame_bytes + bytes.readUInt32BE(at);
    const type = bytes.toString('latin1', at + 4, at + 8);
    if (type === 'acTL') fail('picture_animated');
    if (type === 'IEND') {
      if (end === bytes.length) return;
      break;
    }
    at = end;
  }
  fail('photo_invalid');
}

function checkWebp(bytes: Buffer): void {
  // The file size in a WebP's header does not include the file's first 8 bytes.
  if (bytes.readUInt32LE(4) + 8 !== bytes.length) fail('photo_invalid');
}

/**
 * Returns the picture's format according to its content. A JPEG may be followed by other data, because cameras append
 * previews and clips. These data are dropped later, when only the pixels are kept. Throws `file_empty`,
 * `picture_type_invalid`, `picture_animated` for a PNG, and `photo_invalid` for a PNG or WebP that is truncated or
 * followed by other bytes.
 */
export function pictureForm(bytes: Buffer): PictureForm {
  if (bytes.length === 0) fail('file_empty');
  if (bytes.subarray(0, png_head_bytes).equals(pngHead)) {
    checkPng(bytes);
    return 'png';
  }
  if (bytes.length > 2 && bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return 'jpeg';
  if (
    bytes.length >= 12 &&
    bytes.toString('latin1', 0, 4) === 'RIFF' &&
    bytes.toString('latin1', 8, 12) === 'WEBP'
  ) {
    checkWebp(bytes);
    return 'webp';
  }
  return fail('picture_type_invalid');
}
