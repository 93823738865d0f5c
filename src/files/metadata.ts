/**
 * Removes metadata from photos, for instance the place where a photo was taken (behaviour §4). Keeps the pixels, the
 * colour profile, the animation and the orientation. A file may be malicious, so it is read in one pass into one
 * buffer.
 */

const jpegHead = Buffer.from('ffd8ff', 'hex');
const pngHead = Buffer.from('89504e470d0a1a0a', 'hex');
/** The bytes of a PNG chunk in addition to its data: length, type and checksum. */
const png_chunk_frame_bytes = 12;
/** The bytes of a WebP chunk before its data: type and length. */
const webp_chunk_head_bytes = 8;
const tiff_entry_bytes = 12;
const orientationTag = 0x0112;
/** EXIF's code for the type of a 16-bit number. */
const tiffShort = 3;
/**
 * The maximum number of bytes by which the result is longer than the original file. The result gets an additional block
 * with the orientation.
 */
const added_bytes_max = 64;

const ascii = (bytes: Buffer, from: number, to: number) => bytes.toString('latin1', from, to);

/**
 * Returns EXIF data that contain only the orientation. Returns undefined if the orientation is missing or upright. The
 * entry is copied unchanged, because programs interpret unusual entries differently.
 */
function orientationOf(exif: Buffer): Buffer | undefined {
  const order = ascii(exif, 0, 2);
  if (exif.length < 8 || (order !== 'II' && order !== 'MM')) return undefined;
  const u16 = (at: number) => (order === 'II' ? exif.readUInt16LE(at) : exif.readUInt16BE(at));
  const first = order === 'II' ? exif.readUInt32LE(4) : exif.readUInt32BE(4);
  if (first + 2 > exif.length) return undefined;
  const end = Math.min(first + 2 + u16(first) * tiff_entry_bytes, exif.length);
  for (let at = first + 2; at + tiff_entry_bytes <= end; at += tiff_entry_bytes) {
    if (u16(at) !== orientationTag) continue;
    if (u16(at + 2) === tiffShort && u16(at + 8) === 1) return undefined;
    // Writes a TIFF list that begins at byte 8 and has a single entry. The four zero bytes at the end say that no other
    // list follows.
    const list = Buffer.from(order === 'II' ? '080000000100' : '000000080001', 'hex');
    const entry = exif.subarray(at, at + tiff_entry_bytes);
    return Buffer.concat([exif.subarray(0, 4), list, entry, Buffer.alloc(4)]);
  }
  return undefined;
}

/** Collects the parts of a file that are kept. */
class Kept {
  readonly source: Buffer;
  readonly #out: Buffer<ArrayBuffer>;
  #length = 0;
  #isOriented = false;

  constructor(source: Buffer) {
    this.source = source;
    // Allocates the buffer outside the shared pool, so that the buffer can be transferred to another thread.
    this.#out = Buffer.alloc(source.length + added_bytes_max);
  }

  get length(): number {
    return this.#length;
  }

  /** Adds `end - begin` bytes, or fewer if the file ends earlier. */
  keep(begin: number, end: number): void {
    this.#length += this.source.copy(this.#out, this.#length, begin, end);
  }

  /** Adds a block with the orientation from the EXIF data. `frame` builds the block. Only the first call adds one. */
  orient(exif: Buffer, frame: (exif: Buffer) => Buffer): void {
    const orientation = orientationOf(exif);
    if (this.#isOriented || orientation === undefined) return;
    this.#isOriented = true;
    this.#length += frame(orientation).copy(this.#out, this.#length);
  }

  get isOriented(): boolean {
    return this.#isOriented;
  }

  /** Returns the result, or undefined if it equals the file. */
  result(): Buffer<ArrayBuffer> | undefined {
    const isSame = !this.#isOriented && this.#length === this.source.length;
    return isSame ? undefined : this.#out.subarray(0, this.#length);
  }
}

/**
 * Returns whether a decoder needs this JPEG segment to show the picture. Cameras store where a photo was taken in APP1,
 * programs store comments in COM, and other segments may contain previews. APP0, APP2 and APP14 describe colours.
 */
function isNeeded(marker: number, data: Buffer): boolean {
  if (marker === 0xe0) return ascii(data, 0, 5) === 'JFIF\0';
  if (marker === 0xe2) return ascii(data, 0, 12) === 'ICC_PROFILE\0';
  if (marker === 0xee) return ascii(data, 0, 5) === 'Adobe';
  return marker >= 0xc0 && marker <= 0xdf;
}

/** Returns the position after the compressed data of a JPEG scan. The markers D0 to D7 and 00 belong to these data. */
function endOfScan(bytes: Buffer, begin: number): number {
  for (let at = begin; at + 1 < bytes.length; at++) {
    if (bytes[at] !== 0xff) continue;
    const next = bytes[at + 1] as number;
    if (next !== 0 && next !== 0xff && (next < 0xd0 || next > 0xd7)) return at;
  }
  return bytes.length;
}

const app1 = (prefix: Buffer, exif: Buffer) =>
  Buffer.concat([Buffer.from([0xff, 0xe1, 0, prefix.length + exif.length + 2]), prefix, exif]);

/**
 * Drops everything after the end of the picture. Cameras append previews and clips there, which have metadata of their
 * own.
 */
function keepJpeg(kept: Kept): void {
  const bytes = kept.source;
  kept.keep(0, 2);
  for (let at = 2; at + 1 < bytes.length; ) {
    const marker = bytes[at + 1] as number;
    const isMarker = bytes[at] === 0xff && marker !== 0 && marker !== 0xff;
    if (isMarker && marker === 0xd9) {
      kept.keep(at, at + 2);
      return;
    }
    // Skips bytes between segments, as decoders do.
    if (!isMarker || (marker >= 0xd0 && marker <= 0xd8) || marker === 1) {
      at += 1;
      continue;
    }
    if (at + 4 > bytes.length) return;
    const end = Math.min(at + 2 + Math.max(2, bytes.readUInt16BE(at + 2)), bytes.length);
    const data = bytes.subarray(at + 4, end);
    if (isNeeded(marker, data)) kept.keep(at, end);
    // The byte after `Exif\0` may have any value, but some programs require 0. Copies this byte unchanged from the
    // file.
    else if (marker === 0xe1 && ascii(data, 0, 5) === 'Exif\0')
      kept.orient(data.subarray(6), (exif) => app1(data.subarray(0, 6), exif));
    at = end;
    if (marker === 0xda) {
      at = endOfScan(bytes, end);
      kept.keep(end, at);
    }
  }
}

/**
 * The optional PNG chunks that change how the picture looks. A chunk whose name begins with a capital letter is not
 * optional.
 */
const pngChunks = new Set(
  'tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI bKGD hIST pHYs sPLT acTL fcTL fdAT'.split(' '),
);

function crc32(bytes: Buffer): number {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

function pngExif(exif: Buffer): Buffer {
  const chunk = Buffer.concat([Buffer.alloc(4), Buffer.from('eXIf'), exif, Buffer.alloc(4)]);
  chunk.writeUInt32BE(exif.length, 0);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4);
  return chunk;
}

function keepPng(kept: Kept): void {
  const bytes = kept.source;
  kept.keep(0, pngHead.length);
  for (let at = pngHead.length; at + 8 <= bytes.length; ) {
    const end = Math.min(at + png_chunk_frame_bytes + bytes.readUInt32BE(at), bytes.length);
    const type = ascii(bytes, at + 4, at + 8);
    if (/^[A-Z]/.test(type) || pngChunks.has(type)) kept.keep(at, end);
    else if (type === 'eXIf') kept.orient(bytes.subarray(at + 8, end - 4), pngExif);
    if (type === 'IEND') return;
    at = end;
  }
}

const webpChunks = new Set(['VP8 ', 'VP8L', 'VP8X', 'ALPH', 'ANIM', 'ANMF', 'ICCP']);
const webp_head_bytes = 12;
/** The flags in the first byte of a VP8X chunk that announce EXIF and XMP data. */
const webpExifFlag = 0x08;
const webpXmpFlag = 0x04;

function webpExif(exif: Buffer): Buffer {
  const head = Buffer.from('EXIF\0\0\0\0');
  head.writeUInt32LE(exif.length, 4);
  return Buffer.concat([head, exif]);
}

/** Removes the prefix that EXIF data have in a JPEG. Some programs write it in a WebP too. */
const withoutPrefix = (exif: Buffer) => (ascii(exif, 0, 6) === 'Exif\0\0' ? exif.subarray(6) : exif);

function keepWebp(kept: Kept): Buffer<ArrayBuffer> | undefined {
  const bytes = kept.source;
  const size = Math.min(bytes.readUInt32LE(4) + 8, bytes.length);
  let flags = -1;
  kept.keep(0, webp_head_bytes);
  for (let at = webp_head_bytes; at + webp_chunk_head_bytes <= size; ) {
    const length = bytes.readUInt32LE(at + 4);
    const end = Math.min(at + webp_chunk_head_bytes + length + (length % 2), size);
    const type = ascii(bytes, at, at + 4);
    const data = bytes.subarray(at + webp_chunk_head_bytes, end);
    if (type === 'VP8X' && flags < 0) flags = kept.length + webp_chunk_head_bytes;
    if (webpChunks.has(type)) kept.keep(at, end);
    else if (type === 'EXIF') kept.orient(withoutPrefix(data), webpExif);
    at = end;
  }
  const result = kept.result();
  result?.writeUInt32LE(result.length - 8, 4);
  if (result !== undefined && flags >= 0 && flags < result.length)
    result[flags] =
      ((result[flags] as number) & ~(webpExifFlag | webpXmpFlag)) | (kept.isOriented ? webpExifFlag : 0);
  return result;
}

/**
 * Removes the metadata of a JPEG, PNG or WebP. Returns undefined if there is none, and for other formats. Takes time
 * linear in the file's size.
 */
export function withoutMetadata(file: Uint8Array): Buffer<ArrayBuffer> | undefined {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const begins = (head: Buffer) => bytes.subarray(0, head.length).equals(head);
  const kept = new Kept(bytes);
  if (begins(jpegHead)) keepJpeg(kept);
  else if (begins(pngHead)) keepPng(kept);
  else if (ascii(bytes, 0, 4) === 'RIFF' && ascii(bytes, 8, 12) === 'WEBP') return keepWebp(kept);
  else return undefined;
  return kept.result();
}
