/**
 * Checks every page and dialog. axe finds nothing serious in the light and dark look, and no content is wider than
 * the window in three languages. With PETREL_UI_SHOTS=<folder>, writes screenshots into this folder: for each page, in
 * light and dark, for phone and desktop, in each language.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { demoKeyPath } from '../../src/config/config.js';
import { en } from '../../src/web/client/words/en.js';
import { words as hy } from '../../src/web/client/words/hy.js';
import { later } from '../../src/web/client/words/later.js';
import { words as ru } from '../../src/web/client/words/ru.js';
import { resultOf } from '../support/service.js';
import { fillGallery, type Gallery, pageOf } from './gallery.js';
import { enter, type Scene, scenesOf } from './scenes.js';
import { startPages, startWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 900_000, hookTimeout: 120_000 });

const folder = process.env.PETREL_UI_SHOTS;
const only = process.env.PETREL_UI_SCENES?.split(',');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const languages = { en: { ...en, ...later }, ru, hy };
const sizes = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } } as const;
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
afterAll(async () => {
  await gallery?.close();
  await world?.stop();
  await pages?.close();
});

async function serious(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    type Violation = { id: string; impact: string; nodes: Array<{ html: string; failureSummary: string }> };
    const { axe: run } = window as unknown as { axe: { run: () => Promise<{ violations: Violation[] }> } };
    return (await run.run()).violations;
  });
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`,
    );
}

/**
 * Returns the elements that are cut by mistake. These are elements partly outside the window, and elements whose text
 * does not fit.
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
      // Leaves out lines that end in an ellipsis, because parts of them may be cut.
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
  const options = { locale: code, colorScheme, bypassCSP: true, viewport: sizes.desktop };
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
    close: () => Promise.all(Object.values(open).map((page) => page.context().close())),
  };
}

describe.each(['light', 'dark'] as const)('pages are shown in the %s look', (look) => {
  test.each(Object.keys(languages) as Array<keyof typeof languages>)(
    'every page and dialog in %s is accessible and fits the window',
    async (code) => {
      const pages = await windows(code, look);
      const wrong: string[] = [];
      for (const scene of scenesOf(gallery).filter(wanted)) {
        const page = pages.of(scene);
        for (const [size, viewport] of Object.entries(sizes)) {
          if (scene.who === null) offerDemo();
          const name = `${scene.name}-${code}-${look}-${size}`;
          await page.setViewportSize(viewport);
          if (size === 'desktop' || scene.anew)
            await enter(page, world.wire.url, scene, languages[code]).catch((error: Error) =>
              wrong.push(`${name}: ${error.message.slice(0, 300)}`),
            );
          else await page.waitForTimeout(250);
          const beyond = await lasting(() => overflowing(page));
          wrong.push(...beyond.map((what) => `${name} overflows: ${what}`));
          // Runs this check only in English, because roles and colours do not depend on the language.
          if (code === 'en')
            wrong.push(...(await lasting(() => serious(page))).map((what) => `${name}: ${what}`));
          if (!folder) continue;
          mkdirSync(folder, { recursive: true });
          await page.screenshot({ path: join(folder, `${name}.png`) });
        }
      }
      await pages.close();
      world.faults();
      expect(wrong).toEqual([]);
    },
  );
});
