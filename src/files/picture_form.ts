/** Finds out the format of a picture from its bytes, before anything decodes them. */
import { fail } from '../errors.js';

export type PictureForm = 'png' | 'jpeg' | 'webp';

const png_head_bytes = 8;
/** The number of bytes in a PNG chunk besides the data: length, type and checksum. */
const png_chunk_frame_bytes = 12;
const pngHead = Buffer.from('89504e470d0a1a0a', 'hex');

/**
 * Checks that nothing follows the last chunk of a PNG, and that the PNG is not animated. The animation chunk of an
 * animated PNG comes before its pixels.
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
  // Adds the bytes of the container head, because the size in the head does not include them.
  if (bytes.readUInt32LE(4) + 8 !== bytes.length) fail('photo_invalid');
}

/**
 * Returns the format of a picture by its content. Allows data after a JPEG, because cameras append previews and clips.
 * Such data are dropped later, because only the pixels are kept. Errors: `file_empty`, `picture_type_invalid`,
 * `picture_animated` for a PNG, `photo_invalid` for a PNG or WebP that is truncated or followed by other bytes.
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
