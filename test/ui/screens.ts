/**
 * Stores a picture of every scene in `test/ui/screens`, and compares new screenshots with it. The comparison is coarse,
 * because times, ports and ids differ between runs. It finds lost styles, missing parts and moved columns.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import sharp from 'sharp';

const folder = fileURLToPath(new URL('screens', import.meta.url));
const browserFile = join(folder, 'browser.json');

/** Stored pictures have half the size of the window. */
const scale = 0.5;
const gap_px = 8;
/** The side of the squares whose mean brightness is compared, in pixels of a stored picture. */
const square_px = 16;
/** A square counts as different if its mean brightness (0 to 255) has changed by more than this number. */
const brightness_max = 24;
/** The maximum share of squares of a window that may differ between two pictures. */
const share_max = 0.1;

/** A screenshot of one window, as PNG. */
export interface Shot {
  readonly width: number;
  readonly height: number;
  readonly png: Buffer;
}

const halfOf = (px: number) => Math.round(px * scale);
const fileOf = (name: string) => join(folder, `${name}.webp`);

/** Draws the windows of a scene side by side. */
export async function sheetOf(shots: readonly Shot[]): Promise<Buffer> {
  let left = 0;
  const parts = [];
  for (const { width, png } of shots) {
    parts.push({ input: await sharp(png).resize(halfOf(width)).png().toBuffer(), left, top: 0 });
    left += halfOf(width) + gap_px;
  }
  const height = halfOf(Math.max(...shots.map((shot) => shot.height)));
  return sharp({ create: { width: left - gap_px, height, channels: 3, background: '#888' } })
    .composite(parts)
    .webp({ quality: 60 })
    .toBuffer();
}

/** Returns the mean brightness of each square of one window in a sheet. */
async function squaresOf(sheet: Buffer, left: number, { width, height }: Shot): Promise<readonly number[]> {
  const part = { left, top: 0, width: halfOf(width), height: halfOf(height) };
  const size = [part.width, part.height].map((px) => Math.floor(px / square_px)) as [number, number];
  const cut = await sharp(sheet).extract(part).greyscale().toBuffer();
  return [
    ...(await sharp(cut)
      .resize(...size, { fit: 'fill', kernel: 'cubic' })
      .raw()
      .toBuffer()),
  ];
}

/** Returns the windows of a scene whose new picture differs from the stored picture. */
export async function differing(name: string, sheet: Buffer, shots: readonly Shot[]): Promise<string[]> {
  if (!existsSync(fileOf(name))) return [`${name} has no kept picture`];
  const kept = readFileSync(fileOf(name));
  const found: string[] = [];
  let left = 0;
  for (const shot of shots) {
    const [before, now] = await Promise.all([squaresOf(kept, left, shot), squaresOf(sheet, left, shot)]);
    const changed = now.filter((value, i) => Math.abs(value - (before[i] ?? 0)) > brightness_max).length;
    const share = changed / now.length;
    if (share > share_max)
      found.push(`${name} at ${shot.width} px: ${Math.round(share * 100)} % of the picture differ`);
    left += halfOf(shot.width) + gap_px;
  }
  return found;
}

/**
 * Describes how this browser draws text, because pictures from other browser versions or other fonts cannot be
 * compared.
 */
export const drawingOf = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const context = document.createElement('canvas').getContext('2d');
    if (!context) return '';
    const widths = ['system-ui', 'ui-monospace', 'monospace'].map((font) => {
      context.font = `40px ${font}`;
      return context.measureText('Petrel, Перевал, Լեռ, 🙂').width.toFixed(1);
    });
    return [navigator.userAgent.match(/Chrome\/\d+/)?.[0], ...widths].join(' ');
  });

/** Returns whether the stored pictures were drawn with the same browser version and fonts. */
export const areComparable = (drawing: string): boolean =>
  existsSync(browserFile) && JSON.parse(readFileSync(browserFile, 'utf8')).drawing === drawing;

export function keep(name: string, sheet: Buffer, drawing: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(fileOf(name), sheet);
  writeFileSync(browserFile, `${JSON.stringify({ drawing })}\n`);
}
