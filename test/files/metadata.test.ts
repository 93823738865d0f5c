/** Tests the removal of metadata from photos: only the orientation remains, and the pixels do not change. */
import sharp, { type Sharp } from 'sharp';
import { describe, expect, test } from 'vitest';
import { withoutMetadata } from '../../src/files/metadata.js';
import { png } from '../support/samples.js';
import { processorMs } from '../support/times.js';

const place = {
  IFD0: { Copyright: 'secret place' },
  IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '48/1 12/1 0/1' },
};
const xmp = '<x:xmpmeta xmlns:x="adobe:ns:meta/">secret town</x:xmpmeta>';
const red = { r: 250, g: 10, b: 10 };
const plain = () => sharp({ create: { width: 96, height: 64, channels: 3, background: red } });

type Encode = (picture: Sharp) => Sharp;
const formats: Readonly<Record<string, Encode>> = {
  jpeg: (picture) => picture.jpeg(),
  'progressive jpeg': (picture) => picture.jpeg({ progressive: true }),
  png: (picture) => picture.png(),
  webp: (picture) => picture.webp(),
};
const tagged = (encode: Encode, orientation: number) =>
  encode(plain().withMetadata({ orientation }).withExif(place).withXmp(xmp)).toBuffer();
const pixelsOf = (bytes: Buffer) => sharp(bytes).raw().toBuffer();

describe.each(Object.entries(formats))('removing the metadata of a %s', (_, encode) => {
  test('the metadata of a photo is removed, and its pixels and colour profile are kept', async () => {
    const given = await encode(plain().withIccProfile('p3').withExif(place).withXmp(xmp)).toBuffer();
    expect(given.includes('secret')).toBe(true);
    const left = withoutMetadata(given) as Buffer;
    expect(left.includes('secret')).toBe(false);
    const { exif, xmp: noXmp, orientation, icc } = await sharp(left).metadata();
    expect([exif, noXmp, orientation]).toEqual([undefined, undefined, undefined]);
    expect(icc).toEqual((await sharp(given).metadata()).icc);
    expect((await pixelsOf(left)).equals(await pixelsOf(given))).toBe(true);
    expect(withoutMetadata(left)).toBe(undefined);
  });

  test.each([2, 6, 8])('the metadata is removed except the orientation %i', async (orientation) => {
    const given = await tagged(encode, orientation);
    const left = withoutMetadata(given) as Buffer;
    expect(left.includes('secret')).toBe(false);
    const found = await sharp(left).metadata();
    expect([found.orientation, found.xmp]).toEqual([orientation, undefined]);
    expect((await pixelsOf(left)).equals(await pixelsOf(given))).toBe(true);
    expect(withoutMetadata(left)?.equals(left)).toBe(true);
  });

  test('the metadata of a photo is removed even if the file is truncated at any byte', async () => {
    const given = await tagged(encode, 6);
    for (let length = 1; length < given.length; length++) {
      const left = withoutMetadata(given.subarray(0, length));
      expect((left ?? given.subarray(0, length)).includes('secret')).toBe(false);
    }
  });

  test('the metadata of a photo is removed even if other bytes follow the picture', async () => {
    const clean = await encode(plain()).toBuffer();
    const preview = await tagged(encode, 6);
    const left = withoutMetadata(Buffer.concat([clean, preview])) as Buffer;
    expect(left.equals(withoutMetadata(clean) ?? clean)).toBe(true);
  });
});

test.each([0x00, 0xff])(
  'a JPEG keeps its orientation and the filler %i of its EXIF block, because some programs read only one filler',
  async (filler) => {
    const given = await tagged((picture) => picture.jpeg(), 6);
    const at = given.indexOf('Exif\0');
    given[at + 5] = filler;
    const left = withoutMetadata(given) as Buffer;
    expect(left.subarray(at, at + 6)).toEqual(given.subarray(at, at + 6));
    expect(left.includes('secret')).toBe(false);
    left[at + 5] = 0;
    expect((await sharp(left).metadata()).orientation).toBe(6);
  },
);

/**
 * Changes single bytes of the EXIF block: the byte order, and the type and count of the orientation entry. Each number
 * is the offset of a byte from the text `Exif`.
 */
test.each([6, 8, 9, 16, 18, 19, 20, 21, 22])(
  'a JPEG with any byte %i in its EXIF block has the same orientation without its metadata',
  async (place) => {
    const given = await tagged((picture) => picture.jpeg(), 6);
    const at = given.indexOf('Exif\0') + place;
    for (const byte of [0, 1, 3, 4, 6, 8, 9, 42, 255]) {
      given[at] = byte;
      const left = withoutMetadata(given) as Buffer;
      const [before, after] = await Promise.all([given, left].map((file) => sharp(file).metadata()));
      expect(after?.orientation ?? 1, `byte ${byte}`).toBe(before?.orientation ?? 1);
    }
  },
);

test('a file without metadata is left as it is', () => {
  for (const bytes of [png(30, 20), Buffer.from('plain text'), Buffer.from('ffd8', 'hex'), Buffer.alloc(0)])
    expect(withoutMetadata(bytes)).toBe(undefined);
});

test('comments, previews and unknown blocks of a JPEG are removed', async () => {
  const clean = await plain().jpeg().toBuffer();
  const segment = (marker: number, text: string) => {
    const data = Buffer.from(text, 'latin1');
    return Buffer.concat([Buffer.from([0xff, marker, 0, data.length + 2]), data]);
  };
  for (const added of [
    segment(0xfe, 'secret comment'),
    segment(0xed, 'Photoshop 3.0\0secret'),
    segment(0xe2, 'MPF\0secret'),
    segment(0xe0, 'JFXX\0secret'),
    segment(0xe1, 'http://ns.adobe.com/xap/1.0/\0secret'),
    segment(0x02, 'secret'),
    Buffer.from('secret'),
  ]) {
    const begin = 4 + clean.readUInt16BE(4);
    const given = Buffer.concat([clean.subarray(0, begin), added, clean.subarray(begin)]);
    expect(withoutMetadata(given)?.equals(clean)).toBe(true);
  }
});

test('removing metadata takes linear time, whatever a file contains', () => {
  const bytes_max = 4 * 1024 * 1024;
  const fill = (head: string, hex: string) => (size: number) =>
    Buffer.concat([Buffer.from(head, 'hex'), Buffer.alloc(size, Buffer.from(hex, 'hex'))]);
  for (const make of [
    fill('ffd8ff', 'ff'),
    fill('ffd8ff', 'ffe10002'),
    fill('ffd8ff', 'ffe10002ffdb0002'),
    fill('ffd8ffda0002', 'ff00'),
    fill('ffd8ff', 'ffda0002ffd0'),
    fill('89504e470d0a1a0a', '00000000655849660000000000000000494441540000000000'),
    fill('524946460000000057454250', '4558494600000000'),
  ]) {
    const bytes = make(bytes_max);
    if (bytes[0] === 0x52) bytes.writeUInt32LE(bytes.length - 8, 4);
    expect(processorMs(() => withoutMetadata(bytes))).toBeLessThan(2_000);
  }
});
