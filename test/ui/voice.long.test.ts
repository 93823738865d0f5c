/** Tests how a person records a voice message. Chromium has a microphone that beeps. */
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { itemsOf, type TestUser } from '../support/service.js';
import { flags, onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let browser: Browser;
let alice: TestUser;
let bob: TestUser;
let group: number;

onSharedWorld((opened) => {
  world = opened;
});
beforeAll(async () => {
  const fake = ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'];
  browser = await chromium.launch({
    executablePath: process.env.PETREL_CHROMIUM as string,
    args: [...flags, ...fake],
    timeout: 60_000,
  });
});
afterAll(() => browser?.close());
beforeEach(async () => {
  const { service } = world;
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  group = await service.newGroup(alice, 'Singers', [bob]);
});

/**
 * Opens the group in the browser with the microphone. `deny` is the error with which the browser refuses the
 * microphone.
 */
async function open(deny = ''): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, locale: 'en-GB' });
  context.setDefaultTimeout(60_000);
  if (deny !== '')
    await context.addInitScript((name) => {
      navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('refused', name));
    }, deny);
  const page = await context.newPage();
  await page.goto(`${world.wire.url}/app#/chat/${group}`);
  await page.getByLabel('Your token').fill(alice.token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await field(page).waitFor();
  return page;
}

const field = (page: Page) => page.getByRole('textbox', { name: 'Message' });
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const recorder = (page: Page) => page.getByRole('group', { name: 'Voice message' });
const focused = (page: Page) => page.evaluate(() => document.activeElement?.getAttribute('aria-label'));
const messages = () => itemsOf(world.service.app(bob, 'GET', `/api/chats/${group}/messages`));
const voices = async () => (await messages()).filter(({ voice }: { voice?: object }) => voice);

async function shot(page: Page, name: string): Promise<void> {
  const folder = process.env.PETREL_UI_SHOTS;
  if (folder === undefined) return;
  const usual = page.viewportSize();
  for (const [look, colorScheme, size] of [
    ['light', 'light', usual],
    ['dark', 'dark', usual],
    ['phone', 'light', { width: 390, height: 780 }],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    if (size) await page.setViewportSize(size);
    await page.screenshot({ path: `${folder}/voice-${name}-${look}.png` });
  }
  if (usual) await page.setViewportSize(usual);
}

test('a person records a voice message and sends it with the keyboard', async () => {
  const page = await open();
  await shot(page, 'idle');
  await button(page, 'Record a voice message').focus();
  await page.keyboard.press('Enter');
  await recorder(page).getByText('0:02').waitFor();
  await page.getByText('Recording', { exact: true }).waitFor({ state: 'attached' });
  expect(await focused(page)).toBe('Send');
  await shot(page, 'recording');
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await voices()).length, { timeout: 60_000 }).toBe(1);
  const [{ voice }] = await voices();
  expect(voice.mime_type).toMatch(/^audio\/(ogg|webm)$/);
  expect(voice.duration).toBeGreaterThanOrEqual(2);
  expect(voice.file_size).toBeGreaterThan(1_000);
  const player = page.locator('audio');
  await expect.poll(async () => (await player.boundingBox())?.width).toBeGreaterThan(200);
  const length = () => player.evaluate((audio: HTMLAudioElement) => audio.duration);
  await expect.poll(length, { timeout: 30_000 }).toBeLessThan(60);
  expect(await length()).toBeGreaterThan(1);
  await shot(page, 'sent');
  await expect.poll(() => focused(page)).toBe('Message');
  await page.context().close();
});

test('a deleted recording is not sent, and the microphone is released', async () => {
  const page = await open();
  for (const end of ['button', 'Escape']) {
    await page.evaluate(() => {
      const media = navigator.mediaDevices;
      const ask = media.getUserMedia.bind(media);
      media.getUserMedia = async (wanted) => {
        const stream = await ask(wanted);
        Object.assign(window, { heard: stream });
        return stream;
      };
    });
    await button(page, 'Record a voice message').click();
    await recorder(page).getByText('0:01').waitFor();
    if (end === 'button') await button(page, 'Delete the recording').click();
    else await page.keyboard.press('Escape');
    await field(page).waitFor();
    const state = () =>
      page.evaluate(() => (window as unknown as { heard: MediaStream }).heard.getTracks()[0]?.readyState);
    await expect.poll(state).toBe('ended');
  }
  expect(await voices()).toEqual([]);
  await page.context().close();
});

test('a person learns why the microphone cannot be used', async () => {
  for (const [error, text] of [
    ['NotAllowedError', 'This page isn’t allowed to use the microphone. Allow it in the browser settings.'],
    ['NotFoundError', 'No microphone was found.'],
    ['AbortError', 'The recording failed. Try again.'],
  ] as const) {
    const page = await open(error);
    await button(page, 'Record a voice message').click();
    await page.getByText(text).waitFor();
    await field(page).waitFor();
    await page.context().close();
  }
});

test('a voice message can be a reply', async () => {
  const page = await open();
  await field(page).fill('Sing it');
  await page.keyboard.press('Enter');
  await page.locator('.message', { hasText: 'Sing it' }).click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Reply' }).click();
  await button(page, 'Record a voice message').click();
  await recorder(page).getByText('0:01').waitFor();
  await button(page, 'Send').click();
  await expect.poll(async () => (await voices()).length, { timeout: 60_000 }).toBe(1);
  expect((await voices())[0].reply_to_message.text).toBe('Sing it');
  await page.context().close();
});
