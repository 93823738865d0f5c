/**
 * Makes avatars, start pictures and thumbnails from uploads. Each picture is decoded, rotated, resized and encoded
 * again, so that only its pixels remain. Uploads may be malicious, so only three decoders are enabled, and one thread
 * decodes one picture at a time with limits on pixels and time.
 */

import type Sharp from 'sharp';
import { ApiError, fail } from '../errors.js';
import { systemTime } from '../time.js';
import { fileLimits as limits } from './limits.js';
import { OwnerQueue } from './owner_queue.js';
import { pictureForm } from './picture_form.js';

export type PictureKind = 'avatar' | 'start_picture';

export interface MadePicture {
  /** WebP for pictures. JPEG for thumbnails, because all clients of the Bot API support it. */
  readonly bytes: Buffer;
  readonly width: number;
  readonly height: number;
}

export type Pictures = ReturnType<typeof createPictures>;

type Library = typeof Sharp;

const retry_after_s = 2;
const edge_px = 0.5;

async function loadLibrary(): Promise<Library> {
  const { default: sharp } = await import('sharp');
  sharp.cache(false);
  sharp.concurrency(1);
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({
    operation: ['VipsForeignLoadPngBuffer', 'VipsForeignLoadJpegBuffer', 'VipsForeignLoadWebpBuffer'],
  });
  return sharp;
}

/** Returns a square mask that is opaque inside its circle. The edge of the circle is soft over one pixel. */
function circleOf(side: number): Buffer {
  const pixels = Buffer.alloc(side * side * 4);
  const radius = side / 2;
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const inside = radius - Math.hypot(x + 0.5 - radius, y + 0.5 - radius) + edge_px;
      pixels[(y * side + x) * 4 + 3] = Math.round(255 * Math.min(1, Math.max(0, inside)));
    }
  }
  return pixels;
}

const circles = new Map<number, Buffer>();
function circle(side: number): Buffer {
  const known = circles.get(side) ?? circleOf(side);
  circles.set(side, known);
  return known;
}

const open = (sharp: Library, bytes: Buffer) =>
  sharp(bytes, { limitInputPixels: limits.picture_pixels_max, failOn: 'error', autoOrient: true }).timeout({
    seconds: limits.picture_make_ms_max / 1_000,
  });

/** Returns the picture's width and height after rotation. Reads only the header of the picture, not its pixels. */
async function sizeOf(sharp: Library, bytes: Buffer) {
  const form = pictureForm(bytes);
  const head = await sharp(bytes, { limitInputPixels: false }).metadata();
  if (head.format !== form) fail('photo_invalid');
  if ((head.pages ?? 1) > 1) fail('picture_animated');
  const { width, height } = head.autoOrient;
  if (width * height > limits.picture_pixels_max) fail('picture_too_large');
  return { width, height };
}

async function makeAvatar(sharp: Library, bytes: Buffer): Promise<readonly MadePicture[]> {
  const { width, height } = await sizeOf(sharp, bytes);
  const [short, long] = [Math.min(width, height), Math.max(width, height)];
  if (short < limits.avatar_given_side_px_min || long > short * limits.avatar_given_aspect_max)
    fail('picture_too_small');
  const side = limits.avatar_side_px;
  const square = await open(sharp, bytes)
    .resize(side, side, { fit: 'cover' })
    .toColourspace('srgb')
    .ensureAlpha()
    .raw()
    .toBuffer();
  const raw = (size: number) => ({ raw: { width: size, height: size, channels: 4 as const } });
  const cropped = (size: number) =>
    sharp(square, raw(side))
      .resize(size, size)
      .composite([{ input: circle(size), ...raw(size), blend: 'dest-in' }])
      .webp({ quality: 90 })
      .toBuffer();
  const made: MadePicture[] = [];
  for (const size of [side, limits.avatar_small_side_px])
    made.push({ bytes: await cropped(size), width: size, height: size });
  return made;
}

async function makeStartPicture(sharp: Library, bytes: Buffer): Promise<readonly MadePicture[]> {
  const { width, height } = await sizeOf(sharp, bytes);
  if (width !== limits.start_picture_width_px || height !== limits.start_picture_height_px)
    fail('start_picture_size');
  const made = await open(sharp, bytes).toColourspace('srgb').webp({ quality: 90 }).toBuffer();
  return [{ bytes: made, width, height }];
}

async function makeThumbnail(sharp: Library, bytes: Buffer): Promise<readonly MadePicture[]> {
  await sizeOf(sharp, bytes);
  const side = limits.thumbnail_side_px_max;
  const { data, info } = await open(sharp, bytes)
    .resize(side, side, { fit: 'inside', withoutEnlargement: true })
    .flatten({ background: 'white' })
    .toColourspace('srgb')
    .jpeg({ quality: 80 })
    .toBuffer({ resolveWithObject: true });
  return [{ bytes: data, width: info.width, height: info.height }];
}

const makers = { avatar: makeAvatar, start_picture: makeStartPicture, thumbnail: makeThumbnail } as const;

interface Waiting {
  readonly kind: keyof typeof makers;
  readonly bytes: Buffer;
  readonly since: number;
  readonly resolve: (made: readonly MadePicture[] | Promise<readonly MadePicture[]>) => void;
  readonly reject: (error: ApiError) => void;
}

/**
 * Loads the image library when the first picture arrives. If the library does not run on this machine, `onError` gets
 * the error.
 */
export function createPictures(onError: (error: unknown) => void, time = systemTime) {
  let library: Promise<Library> | undefined;
  let running = false;
  const queue = new OwnerQueue<Waiting>({
    items: limits.pictures_waiting_max,
    bytes: limits.pictures_waiting_bytes_max,
    ownItems: limits.pictures_waiting_own_max,
    ownBytes: limits.pictures_waiting_own_bytes_max,
  });

  async function makeNow(kind: keyof typeof makers, bytes: Buffer): Promise<readonly MadePicture[]> {
    library ??= loadLibrary();
    const sharp = await library.catch((error: unknown) => {
      library = undefined;
      onError(error);
      return fail('unavailable', { retry_after: retry_after_s });
    });
    try {
      return await makers[kind](sharp, bytes);
    } catch (error) {
      // Hides the decoder's own message from callers.
      throw error instanceof ApiError ? error : new ApiError('photo_invalid');
    }
  }

  /** Processes the waiting pictures one after another. Their owners take turns. */
  async function makeAll(): Promise<void> {
    if (running) return;
    running = true;
    for (let next = queue.take(); next !== undefined; next = queue.take()) {
      const { kind, bytes, since, resolve, reject } = next;
      const isLate = time.monotonic() - since > limits.picture_wait_ms_max;
      if (isLate) {
        reject(new ApiError('too_many_requests', { retry_after: retry_after_s }));
        continue;
      }
      const made = makeNow(kind, bytes);
      resolve(made);
      await made.catch(() => undefined);
    }
    running = false;
  }

  return {
    /**
     * Makes an avatar, a start picture or a thumbnail for `owner`. An avatar is cropped to a circle, in two sizes, the
     * larger first. Throws `file_empty`, `picture_type_invalid`, `picture_animated`, `picture_too_large`,
     * `picture_too_small`, `start_picture_size`, `photo_invalid` for a picture that cannot be decoded,
     * `too_many_requests` if this owner, or all owners together, already have too many waiting pictures, and
     * `unavailable`.
     */
    make(owner: number, kind: keyof typeof makers, bytes: Buffer): Promise<readonly MadePicture[]> {
      return new Promise((resolve, reject) => {
        const waiting = { kind, bytes, since: time.monotonic(), resolve, reject };
        if (!queue.add(owner, bytes.length, waiting))
          fail('too_many_requests', { retry_after: retry_after_s });
        void makeAll();
      });
    },
  };
}
