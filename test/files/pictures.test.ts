/** Tests the processing of pictures that owners upload: valid pictures in every format, and hostile files. */
import sharp from 'sharp';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  createPictures,
  type MadePicture,
  type PictureKind,
  type Pictures,
} from '../../src/files/pictures.js';
import { limits } from '../../src/limits.js';
import { png } from '../support/samples.js';
import { VirtualTime } from '../support/virtual_time.js';

// `beforeAll` encodes all samples, because processing the first picture disables all decoders that Petrel does not
// need.
const red = { r: 250, g: 10, b: 10 };
const plain = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: red } });
const failures: unknown[] = [];
// The clock does not advance, so that no picture waits too long on a busy machine.
const time = new VirtualTime();
const pictures: Pictures = createPictures((error) => failures.push(error), time);
const made = (kind: PictureKind, bytes: Buffer) => pictures.make(1, kind, bytes);
const refusal = (kind: PictureKind, bytes: Buffer) =>
  made(kind, bytes).then(
    () => 'taken',
    (error: Error) => error.message,
  );

let good: Record<string, Buffer>;
/** A picture with a red left half and a blue right half. Its orientation tag rotates it by 90 degrees. */
let turned: Buffer;
let moving: Buffer;

beforeAll(async () => {
  const blue = {
    input: { create: { width: 150, height: 100, channels: 3 as const, background: 'blue' } },
    left: 150,
    top: 0,
  };
  const place = {
    IFD0: { Copyright: 'secret place' },
    IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '48/1 12/1 0/1' },
  };
  good = {
    png: await plain(300, 200).png().toBuffer(),
    jpeg: await plain(300, 200).withExif(place).jpeg().toBuffer(),
    webp: await plain(300, 200).webp().toBuffer(),
    progressive: await plain(300, 200).jpeg({ progressive: true }).toBuffer(),
    grey: png(64, 64),
    transparent: await sharp({
      create: { width: 90, height: 90, channels: 4, background: { ...red, alpha: 0 } },
    })
      .png()
      .toBuffer(),
  };
  turned = await plain(300, 100).composite([blue]).withMetadata({ orientation: 6 }).jpeg().toBuffer();
  const frames = Buffer.alloc(64 * 128 * 3, 7);
  frames.fill(200, 64 * 64 * 3);
  moving = await sharp(frames, { raw: { width: 64, height: 128, channels: 3, pageHeight: 64 } })
    .webp()
    .toBuffer();
});

const pixels = async ({ bytes }: MadePicture) => {
  const { data, info } = await sharp(bytes).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  return (x: number, y: number) => [...data.subarray((y * info.width + x) * 4, (y * info.width + x) * 4 + 4)];
};

describe('avatars', () => {
  test.each(['png', 'jpeg', 'webp', 'progressive', 'grey'])(
    'interface §2: an avatar made of %s is cut to a circle',
    async (form) => {
      const both = await made('avatar', good[form] as Buffer);
      expect(both.map(({ width, height }) => [width, height])).toEqual([
        [512, 512],
        [128, 128],
      ]);
      for (const picture of both) {
        const at = await pixels(picture);
        const { width } = picture;
        const [middle, edge] = [width / 2, width - 1];
        for (const [x, y] of [
          [0, 0],
          [edge, 0],
          [0, edge],
          [edge, edge],
          [4, 12],
        ] as const)
          expect(at(x, y)[3]).toBe(0);
        for (const [x, y] of [
          [middle, middle],
          [middle, 2],
          [2, middle],
          [edge - 2, middle],
        ] as const)
          expect(at(x, y)[3]).toBe(255);
        const [r = 0, g = 0] = at(middle, middle);
        if (form !== 'grey') expect([r > 230, g < 40]).toEqual([true, true]);
      }
    },
  );

  test('interface §2: an avatar is turned upright and cropped to its middle', async () => {
    const [large] = await made('avatar', turned);
    const at = await pixels(large as MadePicture);
    // After the rotation by 90 degrees, red is above blue.
    expect(at(256, 60)[0]).toBeGreaterThan(200);
    expect(at(256, 60)[2]).toBeLessThan(60);
    expect(at(256, 450)[2]).toBeGreaterThan(200);
    expect(at(256, 450)[0]).toBeLessThan(60);
  });

  test('transparent pixels of an avatar stay transparent', async () => {
    const [large] = await made('avatar', good.transparent as Buffer);
    expect((await pixels(large as MadePicture))(256, 256)[3]).toBe(0);
  });

  test('the metadata of an upload is removed, and its pixels are kept', async () => {
    const jpeg = good.jpeg as Buffer;
    const script = Buffer.from('<script>alert(1)</script>');
    expect(jpeg.includes('secret place')).toBe(true);
    for (const given of [jpeg, Buffer.concat([jpeg, script])])
      for (const { bytes } of await made('avatar', given)) {
        expect([bytes.includes('secret'), bytes.includes('<script>')]).toEqual([false, false]);
        const { exif, icc, xmp, iptc, orientation, format } = await sharp(bytes).metadata();
        expect([exif, icc, xmp, iptc, orientation, format]).toEqual([...Array(5).fill(undefined), 'webp']);
      }
  });
});

describe('start pictures', () => {
  const exact = () => plain(640, 360).jpeg();

  test('interface §8: a start picture of 640x360 is accepted as it is', async () => {
    const [picture, ...others] = await made('start_picture', await exact().toBuffer());
    expect(others).toEqual([]);
    expect(picture).toMatchObject({ width: 640, height: 360 });
    expect(await sharp(picture?.bytes).metadata()).toMatchObject({ format: 'webp', width: 640, height: 360 });
    const [corner] = [(await pixels(picture as MadePicture))(0, 0)];
    expect(corner[3]).toBe(255);
  });

  test.each([
    [639, 360],
    [640, 361],
    [360, 640],
    [1280, 720],
  ])('interface §8: a start picture of %i by %i is refused', async (width, height) => {
    const text = 'Bad Request: start picture must be 640x360 pixels';
    expect(await refusal('start_picture', await plain(width, height).png().toBuffer())).toBe(text);
  });

  test('interface §8: the size of a start picture is measured after its orientation is applied', async () => {
    const upright = await plain(360, 640).withMetadata({ orientation: 8 }).jpeg().toBuffer();
    expect(await made('start_picture', upright)).toMatchObject([{ width: 640, height: 360 }]);
    const lying = await exact().withMetadata({ orientation: 6 }).toBuffer();
    expect(await refusal('start_picture', lying)).toContain('must be 640x360');
  });
});

const svg = `<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>
<svg xmlns="http://www.w3.org/2000/svg" width="640" height="360"><text y="20">&x;</text></svg>`;
const failed = 'Bad Request: IMAGE_PROCESS_FAILED';
const form = 'Bad Request: picture must be a PNG, JPEG or WebP image';

/** Makes a picture whose header declares a larger size than the data have. */
const bomb = (width: number, height: number) => png(8, 8, [width, height]);

describe.each(['avatar', 'start_picture'] as const)('hostile files as %s', (kind) => {
  test.each([
    ['an empty file', () => Buffer.alloc(0), 'Bad Request: file must be non-empty'],
    ['an SVG with an external entity', () => Buffer.from(svg), form],
    ['an HTML page', () => Buffer.from('<html>'), form],
    ['an animated GIF', () => Buffer.from('GIF89a\x01\x00\x01\x00\x80\x00\x00', 'latin1'), form],
    ['a PDF', () => Buffer.from('%PDF-1.7'), form],
    [
      'an HTML page that contains a PNG',
      () => Buffer.concat([Buffer.from('<!--'), good.png as Buffer]),
      form,
    ],
    ['a TIFF', () => Buffer.from('49492a0008000000', 'hex'), form],
    ['two bytes', () => Buffer.from([0xff, 0xd8]), form],
    ['half a PNG', () => (good.png as Buffer).subarray(0, 120), failed],
    ['half a JPEG', () => (good.jpeg as Buffer).subarray(0, (good.jpeg as Buffer).length / 2), failed],
    ['half a WebP', () => (good.webp as Buffer).subarray(0, 60), failed],
    ['a PNG followed by an SVG', () => Buffer.concat([good.png as Buffer, Buffer.from(svg)]), failed],
    ['a WebP followed by an SVG', () => Buffer.concat([good.webp as Buffer, Buffer.from(svg)]), failed],
    ['a JPEG header alone', () => Buffer.from('ffd8ffe000104a464946', 'hex'), failed],
    [
      'an SVG with the first bytes of a JPEG',
      () => Buffer.concat([Buffer.from('ffd8ff', 'hex'), Buffer.from(svg)]),
      failed,
    ],
    ['an animated picture', () => moving, 'Bad Request: picture must not be animated'],
    ['60000 by 60000 pixels', () => bomb(60_000, 60_000), 'Bad Request: picture has too many pixels'],
  ])('behaviour §11: the picture upload %s is refused', async (_, bytes, text) => {
    expect(await refusal(kind, bytes())).toBe(text);
  });
});

test('a picture is refused if its data has fewer pixels than its header declares', async () => {
  expect(await refusal('avatar', bomb(3_000, 3_000))).toBe(failed);
  const tiny = 'Bad Request: picture is too small';
  expect(await refusal('avatar', png(31, 64))).toBe(tiny);
  expect(await refusal('avatar', png(64, 64 * limits.avatar_given_aspect_max + 1))).toBe(tiny);
  expect((await made('avatar', png(32, 64))).length).toBe(2);
});

test('pictures are processed one at a time, and owners take turns', async () => {
  const order: number[] = [];
  const tiny = 'Bad Request: picture is too small';
  const make = async (owner: number) => {
    const outcome = await pictures.make(owner, 'avatar', png(31, 64)).catch(({ message }: Error) => message);
    if (outcome === tiny) order.push(owner);
    return outcome;
  };
  // Starts two pictures more than the limit of waiting pictures. The first picture is processed immediately, and the
  // last picture is refused.
  const all = Array.from({ length: limits.pictures_waiting_own_max + 2 }, () => make(1));
  const other = make(2);
  const outcomes = await Promise.all(all);
  expect(outcomes.filter((text) => text === tiny)).toHaveLength(limits.pictures_waiting_own_max + 1);
  expect(outcomes.at(-1)).toBe('Too Many Requests: retry after 2');
  expect(await other).toBe(tiny);
  expect(order.slice(0, 3)).toEqual([1, 1, 2]);
  expect(await refusal('avatar', png(40, 40))).toBe('taken');
  expect(failures).toEqual([]);
});

test('a picture that waits too long for its turn is refused, and the next picture is processed', async () => {
  const first = refusal('avatar', good.png as Buffer);
  const second = refusal('avatar', good.png as Buffer);
  await time.advance(limits.picture_wait_ms_max + 1);
  expect(await Promise.all([first, second])).toEqual(['taken', 'Too Many Requests: retry after 2']);
  expect(await refusal('avatar', good.png as Buffer)).toBe('taken');
});
