/**
 * Checks every page and dialog in windows of five widths. In the light and dark look, axe finds nothing. In three
 * languages, nothing is cut and no texts overlap. With PETREL_UI_COMPARE=1, as in `npm run test:ui`, the English pages
 * must look like the pictures in `test/ui/screens`.
 *
 * PETREL_UI_SHOTS=<folder> writes each screenshot and each picture that differs into the folder. PETREL_UI_KEEP=1
 * replaces the pictures in `test/ui/screens`. PETREL_UI_SCENES=<names> selects scenes.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { demoKeyPath } from '../../src/config/config.js';
import { en } from '../../src/web/client/words/en.js';
import { words as hy } from '../../src/web/client/words/hy.js';
import { later } from '../../src/web/client/words/later.js';
import { words as ru } from '../../src/web/client/words/ru.js';
import { resultOf } from '../support/service.js';
import { fillGallery, type Gallery, pageOf } from './gallery.js';
import { enter, type Scene, scenesOf } from './scenes.js';
import { areComparable, differing, drawingOf, keep, type Shot, sheetOf } from './screens.js';
import { separateTests, startPages, startWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 2_400_000, hookTimeout: 120_000 });

const folder = process.env.PETREL_UI_SHOTS;
const isKeeping = process.env.PETREL_UI_KEEP === '1';
const isComparing = process.env.PETREL_UI_COMPARE === '1' && !isKeeping;
const only = process.env.PETREL_UI_SCENES?.split(',');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const languages = { en: { ...en, ...later }, ru, hy };
/** Window sizes, keyed by width. */
const sizes = {
  1440: { width: 1440, height: 900 },
  1024: { width: 1024, height: 768 },
  768: { width: 768, height: 1024 },
  390: { width: 390, height: 844 },
  320: { width: 320, height: 640 },
} as const;
const widths = [1440, 1024, 768, 390, 320] as const;
const demo = join(tmpdir(), `petrel-gallery-${process.pid}.json`);

const offerDemo = () => writeFileSync(demoKeyPath(demo), 'gallery');

let world: World;
let gallery: Gallery;
let pages: Awaited<ReturnType<typeof startPages>>;

beforeAll(async () => {
  pages = await startPages(pageOf);
  world = await startWorld({ DEMO_FILE: demo }, pages.env);
  gallery = await fillGallery(world.service, pages.url);
  const { alice, bob } = gallery;
  const users = Object.fromEntries(
    [alice, bob].map(({ id, username, token }) => [username, { id, username, token }]),
  );
  writeFileSync(demo, JSON.stringify({ users }));
});
separateTests(() => world);
afterAll(async () => {
  await gallery?.close();
  await world?.stop();
  await pages?.close();
});

/**
 * Runs axe. The dark look needs only the rules on colours, because everything else is the same in both looks. A popup
 * menu needs no landmark around it. A list of options needs no focus to scroll, because the text field selects its
 * options.
 */
async function findings(page: Page, look: 'light' | 'dark'): Promise<string[]> {
  await page.evaluate(axe);
  const found = await page.evaluate(async (isDark) => {
    type Violation = { id: string; nodes: Array<{ html: string; failureSummary: string }> };
    const { axe: all } = window as unknown as {
      axe: {
        configure: (options: object) => void;
        run: (options: object) => Promise<{ violations: Violation[] }>;
      };
    };
    const regionMatcher = 'dialog, [role=dialog], [role=alertdialog], svg, [role=menu]';
    all.configure({
      checks: [{ id: 'region', options: { regionMatcher } }],
      rules: [{ id: 'scrollable-region-focusable', selector: ':not(select, textarea, [role=listbox])' }],
    });
    const options = isDark ? { runOnly: ['color-contrast', 'link-in-text-block'] } : {};
    return (await all.run(options)).violations;
  }, look === 'dark');
  return found.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`,
  );
}

/**
 * Returns the elements that are unintentionally cut: elements partly outside the window, and elements whose text does
 * not fit.
 */
const overflowing = (page: Page) =>
  page.evaluate(() => {
    const meant =
      '.scroll, .tabs, pre, .code, .sr-only, .reactEasyCrop_Container, [frimousse-viewport], input, textarea';
    const cut = (style: CSSStyleDeclaration) =>
      style.textOverflow === 'ellipsis' || style.overflowX === 'auto';
    return [...document.querySelectorAll('body *')].flatMap((element) => {
      const { left, right, width } = element.getBoundingClientRect();
      if (width === 0 || element.closest(meant) || element.closest('svg')) return [];
      // Parts of a line that ends in an ellipsis may be cut.
      const parent = element.parentElement && getComputedStyle(element.parentElement);
      const beyond = (left < -1 || right > innerWidth + 1) && parent?.textOverflow !== 'ellipsis';
      const style = getComputedStyle(element);
      const wide =
        element.scrollWidth > element.clientWidth + 2 &&
        element.clientWidth > 0 &&
        style.overflowX !== 'visible';
      if (!beyond && (!wide || cut(style))) return [];
      return [`${element.tagName}.${element.className} ${element.textContent?.slice(0, 60)}`];
    });
  });

/** Returns pairs of texts that overlap in the topmost layer. Overlaps by elements with a CSS position are allowed. */
const overlapping = (page: Page) =>
  page.evaluate(() => {
    const layer = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
    const clipped = (node: Node, rect: DOMRect) => {
      let { left, right, top, bottom } = rect;
      for (let box = node.parentElement; box && box !== layer; box = box.parentElement) {
        const style = getComputedStyle(box);
        if (style.visibility === 'hidden' || style.opacity === '0') return null;
        if (style.overflowX === 'visible' && style.overflowY === 'visible') continue;
        const edge = box.getBoundingClientRect();
        [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)];
        [top, bottom] = [Math.max(top, edge.top), Math.min(bottom, edge.bottom)];
      }
      return right - left > 3 && bottom - top > 3 ? { left, right, top, bottom } : null;
    };
    const walker = document.createTreeWalker(layer, NodeFilter.SHOW_TEXT);
    const texts: Array<{ node: Node; rect: NonNullable<ReturnType<typeof clipped>> }> = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.textContent?.trim() === '' || node.parentElement?.closest('.sr-only, script, style')) continue;
      // Skips hidden texts, because the texts in a closed `details` element still have positions.
      if (!node.parentElement?.checkVisibility()) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const one of range.getClientRects()) {
        const rect = clipped(node, one);
        if (rect) texts.push({ node, rect });
      }
    }
    const isPositioned = (node: Node, top: Node | null) => {
      for (let box = node.parentElement; box && box !== top; box = box.parentElement)
        if (getComputedStyle(box).position !== 'static' && getComputedStyle(box).position !== 'relative')
          return true;
      return false;
    };
    return texts.flatMap(({ node, rect: a }, i) =>
      texts.slice(i + 1).flatMap(({ node: other, rect: b }) => {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (node === other || across <= 2 || down <= 6) return [];
        const range = document.createRange();
        range.setStartBefore(node);
        range.setEndAfter(other);
        const shared = range.commonAncestorContainer;
        if (isPositioned(node, shared) || isPositioned(other, shared)) return [];
        return [`“${node.textContent?.slice(0, 30)}” and “${other.textContent?.slice(0, 30)}”`];
      }),
    );
  });

/** Reads the faults of a page until there are none, for at most 5 s. A busy machine draws a page slowly. */
async function lasting(read: () => Promise<string[]>): Promise<string[]> {
  for (const end = performance.now() + 5_000; ; ) {
    const found = await read();
    if (found.length === 0 || performance.now() > end) return found;
  }
}

const wanted = (scene: Scene) => !only || only.includes(scene.name);

async function windows(code: string, colorScheme: 'light' | 'dark') {
  const { alice, newcomer } = gallery;
  const options = { locale: code, colorScheme, bypassCSP: true, viewport: sizes[1440] };
  for (const user of [alice, newcomer])
    await resultOf(world.service.app(user, 'PATCH', '/api/me', { language_code: 'en' }));
  const open = {
    '': await world.open(null, '', options),
    alice: await world.open(alice, '', { ...options, locale: 'en' }),
    newcomer: await world.open(newcomer, '', { ...options, locale: 'en' }),
  };
  for (const user of [alice, newcomer])
    await resultOf(world.service.app(user, 'PATCH', '/api/me', { language_code: code }));
  return {
    of: ({ who }: Scene) => (who === null ? open[''] : open[who ?? 'alice']),
    all: Object.values(open),
  };
}

interface Pages {
  readonly code: keyof typeof languages;
  readonly look: 'light' | 'dark';
}

/** Shows a scene in a window, and returns the faults of the scene. */
async function faultsOf(page: Page, scene: Scene, { code, look }: Pages, width: (typeof widths)[number]) {
  const wrong: string[] = [];
  if (scene.who === null) offerDemo();
  await page.setViewportSize(sizes[width]);
  if (width === widths[0] || scene.anew)
    await enter(page, world.wire.url, scene, languages[code]).catch((error: Error) =>
      wrong.push(error.message.slice(0, 300)),
    );
  else await page.waitForTimeout(250);
  // Checks the layout only in the light look, because the layout does not depend on colours.
  if (look === 'light') {
    wrong.push(...(await lasting(() => overflowing(page))).map((what) => `overflows: ${what}`));
    wrong.push(...(await lasting(() => overlapping(page))).map((what) => `overlap: ${what}`));
  }
  // axe runs in English only, because roles and colours do not depend on the language.
  if (code === 'en') wrong.push(...(await lasting(() => findings(page, look))));
  return wrong;
}

/** Compares a scene with its stored picture, or stores a new picture, depending on the settings of the run. */
async function compare(name: string, shots: readonly Shot[], drawing: string): Promise<string[]> {
  const sheet = await sheetOf(shots);
  if (isKeeping) keep(name, sheet, drawing);
  if (!isComparing || !areComparable(drawing)) return [];
  const found = await differing(name, sheet, shots);
  if (found.length > 0 && folder) writeFileSync(join(folder, `${name}.webp`), sheet);
  return found;
}

// Languages other than English are checked only in the light look, because the layout does not depend on colours.
test.each([
  ['en', 'light'],
  ['en', 'dark'],
  ['ru', 'light'],
  ['hy', 'light'],
] as const)(
  'every page and dialog in %s and the %s look is accessible and fits windows of five widths',
  async (code, look) => {
    const pages = await windows(code, look);
    const drawing = await drawingOf(pages.all[0] as Page);
    if (code === 'en' && isComparing && !areComparable(drawing))
      console.log('Skipped: the comparison of pictures, because this browser draws text in another way');
    if (folder) mkdirSync(folder, { recursive: true });
    const wrong: string[] = [];
    for (const scene of scenesOf(gallery).filter(wanted)) {
      const page = pages.of(scene);
      const shots: Shot[] = [];
      for (const width of widths) {
        const name = `${scene.name}-${code}-${look}-${width}`;
        const faults = await faultsOf(page, scene, { code, look }, width);
        wrong.push(...faults.map((what) => `${name}: ${what}`));
        const png = await page.screenshot();
        shots.push({ ...sizes[width], png });
        if (folder) writeFileSync(join(folder, `${name}.png`), png);
      }
      if (code === 'en' && !scene.varies)
        wrong.push(...(await compare(`${scene.name}-${look}`, shots, drawing)));
    }
    world.faults();
    expect(wrong).toEqual([]);
  },
);
