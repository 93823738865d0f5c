/**
 * Removes the metadata of randomly damaged pictures and compares the decoded pixels before and after. A photo that a
 * program can show must look the same after the metadata is removed.
 */
import fc from 'fast-check';
import sharp, { type Sharp } from 'sharp';
import { expect, test } from 'vitest';
import { withoutMetadata } from '../../src/files/metadata.js';

const numRuns = Number(process.env.PETREL_PICTURE_CASES ?? 60);

/** A picture with many colours, so that its compressed data contain many different bytes. */
const noise = (animated = false) => {
  const raw = Buffer.alloc(48 * 64 * 3, 0);
  for (const [i] of raw.entries()) raw[i] = (i * 31 + (i >> 3) * 17) % 256;
  const pages = animated ? { pageHeight: 16 } : {};
  return sharp(raw, { raw: { width: 48, height: 64, channels: 3, ...pages } })
    .withIccProfile('p3')
    .withMetadata({ orientation: 6 })
    .withExif({ IFD0: { Copyright: 'secret' } })
    .withXmp('<x:xmpmeta xmlns:x="adobe:ns:meta/">secret</x:xmpmeta>');
};
const formats: Readonly<Record<string, () => Sharp>> = {
  jpeg: () => noise().jpeg(),
  'progressive jpeg': () => noise().jpeg({ progressive: true, chromaSubsampling: '4:4:4' }),
  png: () => noise().png(),
  'png with a palette': () => noise().png({ palette: true }),
  webp: () => noise().webp(),
  'lossless webp': () => noise().webp({ lossless: true }),
  'animated webp': () => noise(true).webp(),
};

type Damage =
  | { readonly do: 'set'; readonly at: number; readonly bytes: Uint8Array }
  | { readonly do: 'cut'; readonly at: number }
  | { readonly do: 'insert'; readonly at: number; readonly bytes: Uint8Array }
  | { readonly do: 'remove' | 'repeat'; readonly at: number; readonly length: number };

const at = fc.double({ min: 0, max: 1, noNaN: true });
/** Bytes for damaging a file: random bytes, or lengths, markers and other values with a special meaning for parsers. */
const bytes = fc.oneof(
  fc
    .constantFrom('00', 'ff', 'ffffffff', '7fffffff', '00000000', 'ffd9', 'ffd8', 'ffda', 'ff00', 'ffffd9')
    .map((hex) => Buffer.from(hex, 'hex')),
  fc.uint8Array({ minLength: 1, maxLength: 6 }),
);
const damage: fc.Arbitrary<Damage> = fc.oneof(
  fc.record({ do: fc.constant('set' as const), at, bytes }),
  fc.record({ do: fc.constant('insert' as const), at, bytes }),
  fc.record({ do: fc.constant('cut' as const), at }),
  fc.record({
    do: fc.constantFrom('remove' as const, 'repeat' as const),
    at,
    length: fc.integer({ min: 1, max: 40 }),
  }),
);

function damaged(file: Buffer, damages: readonly Damage[]): Buffer {
  let made: Buffer = Buffer.from(file);
  for (const each of damages) {
    const place = Math.floor(each.at * made.length);
    if (each.do === 'cut') made = made.subarray(0, place);
    else if (each.do === 'set') Buffer.from(each.bytes).copy(made, place);
    else if (each.do === 'insert')
      made = Buffer.concat([made.subarray(0, place), each.bytes, made.subarray(place)]);
    else {
      const end = each.do === 'remove' ? place + each.length : Math.max(0, place - each.length);
      made = Buffer.concat([made.subarray(0, place), made.subarray(end)]);
    }
  }
  return made;
}

/**
 * Returns the decoded picture, or null if the decoder refuses the file. `failOn` says which defects of a file the
 * decoder refuses.
 */
async function shown(file: Buffer, failOn: 'none' | 'error') {
  try {
    const { orientation, icc, pages } = await sharp(file).metadata();
    const pixels = await sharp(file, { failOn, animated: true }).raw().toBuffer();
    return { orientation: orientation ?? 1, icc, pages, pixels };
  } catch {
    return null;
  }
}

test.each(Object.entries(formats))('a damaged %s looks the same without its metadata', async (_, make) => {
  const file = await make().toBuffer();
  expect(file.includes('secret')).toBe(true);
  await fc.assert(
    fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 3 }), async (damages) => {
      const given = damaged(file, damages);
      const left = withoutMetadata(given);
      if (left === undefined) return;
      // Decodes the result without failing on errors. If damaged compressed data look like the start of a long block,
      // the end of the result may be missing.
      const before = await shown(given, 'error');
      if (before !== null) expect(await shown(left, 'none')).toEqual(before);
    }),
    { numRuns },
  );
});
