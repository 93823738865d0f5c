/** Tests formatting, mentions and code blocks in the chats of the application. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { itemsOf, resultOf, type TestBot, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 180_000 });

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let world: World;
let [alice, bob] = [] as unknown as [TestUser, TestUser];
let bot: TestBot;
let group: number;

onSharedWorld(async (opened) => {
  world = opened;
  const { service } = world;
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  bot = await service.newBot(alice, 'helper');
  group = await service.newGroup(alice, 'Harbour', [bob, bot]);
});

const path = () => `/api/chats/${group}/messages`;
const fieldOf = (page: Page) => page.getByRole('textbox', { name: 'Message' });
const toolbarOf = (page: Page) => page.getByRole('toolbar', { name: 'Formatting' });
const optionsOf = (page: Page) => page.getByRole('listbox', { name: 'Mention a member' }).getByRole('option');

/** Waits until the field contains the text. */
const holds = (page: Page, text: string | undefined) =>
  expect.poll(() => fieldOf(page).inputValue()).toBe(text);

/** Selects the first occurrence of a part of the text in the field. */
const select = (page: Page, part: string) =>
  fieldOf(page).evaluate((field, words) => {
    const area = field as HTMLTextAreaElement;
    const from = area.value.indexOf(words);
    area.focus();
    area.setSelectionRange(from, from + words.length);
  }, part);

/** Waits until the newest message in the group has the text `text`, and returns it. */
async function sent(text: string) {
  const newest = async () => (await itemsOf(world.service.app(alice, 'GET', `${path()}?limit=1`)))[0];
  await expect.poll(async () => (await newest())?.text).toBe(text);
  return newest();
}

/** Returns everything that axe finds in an element. */
async function violations(page: Page, selector: string): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async (at) => {
    const { axe: all } = window as unknown as {
      axe: {
        run: (at: string) => Promise<{ violations: Array<{ id: string; nodes: Array<{ html: string }> }> }>;
      };
    };
    return (await all.run(at)).violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
  }, selector);
}

test('the buttons above the text field format the selected text, and the change can be undone', async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  await fieldOf(page).fill('one two three');
  expect(await toolbarOf(page).count()).toBe(0);
  await select(page, 'two');
  await toolbarOf(page).getByRole('button', { name: 'Bold' }).click();
  await holds(page, 'one **two** three');
  await toolbarOf(page).getByRole('button', { name: 'Italic' }).click();
  await holds(page, 'one **_two_** three');
  await page.keyboard.press('Control+z');
  await holds(page, 'one **two** three');
  await select(page, 'two');
  await toolbarOf(page).getByRole('button', { name: 'Bold' }).click();
  await holds(page, 'one two three');
  await toolbarOf(page).getByRole('button', { name: 'Bold' }).click();
  await page.getByRole('button', { name: 'Send' }).click();
  expect((await sent('one two three')).entities).toEqual([{ type: 'bold', offset: 4, length: 3 }]);
  expect(await page.getByRole('log').locator('strong').last().textContent()).toBe('two');
  expect(await toolbarOf(page).count()).toBe(0);
  expect(world.faults()).toEqual([]);
});

test('keyboard shortcuts format the selected text, and Ctrl+K finds a chat if nothing is selected', async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  const keys = ['B', 'I', 'U', 'Shift+X', 'Shift+H', 'Shift+M', 'Shift+E', 'Shift+.'];
  const written = ['**x**', '_x_', '++x++', '~~x~~', '||x||', '`x`', '```\nx\n```', '> x'];
  for (const [i, key] of keys.entries()) {
    await fieldOf(page).fill('x');
    await select(page, 'x');
    await page.keyboard.press(`Control+${key}`);
    await holds(page, written[i]);
  }
  await fieldOf(page).fill('see this');
  await select(page, 'this');
  await page.keyboard.press('Control+k');
  await holds(page, 'see [this](https://)');
  await page.keyboard.type('https://example.org/');
  await holds(page, 'see [this](https://example.org/)');
  await page.keyboard.press('Enter');
  const url = 'https://example.org/';
  expect((await sent('see this')).entities).toEqual([{ type: 'text_link', offset: 4, length: 4, url }]);
  expect(await page.getByRole('link', { name: 'this', exact: true }).getAttribute('href')).toBe(url);
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog', { name: 'Find a chat' }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Shift+Tab');
  await page.getByRole('log').focus();
  await page.keyboard.press('?');
  const list = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await list.getByText('Ctrl+Shift+X').waitFor();
  expect(world.faults()).toEqual([]);
});

test('the toolbar works with the keyboard alone', async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  await fieldOf(page).fill('one two');
  await select(page, 'two');
  await toolbarOf(page).waitFor();
  const isInToolbar = () => toolbarOf(page).evaluate((bar) => bar.contains(document.activeElement));
  for (let presses = 0; !(await isInToolbar()) && presses < 5; presses++)
    await page.keyboard.press('Shift+Tab');
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label'));
  expect(await focused()).toBe('Bold');
  await page.keyboard.press('ArrowLeft');
  expect(await focused()).toBe('Link');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  expect(await focused()).toBe('Italic');
  await page.keyboard.press('Enter');
  await holds(page, 'one _two_');
  expect(await focused()).toBe('Message');
  for (let presses = 0; !(await isInToolbar()) && presses < 5; presses++)
    await page.keyboard.press('Shift+Tab');
  expect(await focused()).toBe('Italic');
  await page.keyboard.press('Escape');
  expect(await focused()).toBe('Message');
  await page.getByRole('searchbox').first().focus();
  await toolbarOf(page).waitFor({ state: 'detached' });
});

test('the text field shows the marks of an edited message, and the message keeps its formatting', async () => {
  const entities = [
    { type: 'bold', offset: 0, length: 3 },
    { type: 'italic', offset: 5, length: 2 },
    { type: 'pre', offset: 12, length: 9, language: 'js' },
  ];
  const given = { text: 'one two and let a = 1', entities };
  await resultOf(world.service.app(alice, 'POST', path(), given));
  await resultOf(world.service.app(alice, 'POST', path(), { text: 'literal **stars**' }));
  const page = await world.open(alice, `#/chat/${group}`);
  await page.getByRole('log').getByText('literal **stars**').waitFor();
  await page.keyboard.press('ArrowUp');
  await holds(page, '{=literal **stars**=}');
  await page.keyboard.press('Escape');
  await page.getByRole('log').getByText('one two and').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Edit' }).click();
  const marked = '{**one**} t{_wo_} and {```js\nlet a = 1```}';
  await holds(page, marked);
  await fieldOf(page).fill(`${marked} and _more_`);
  await page.keyboard.press('Enter');
  await page.getByText('Editing').waitFor({ state: 'detached' });
  const edited = (await itemsOf(world.service.app(alice, 'GET', `${path()}?limit=2`)))[1];
  expect(edited.text).toBe('one two and let a = 1 and more');
  expect(edited.entities).toEqual([...entities, { type: 'italic', offset: 26, length: 4 }]);
  expect(world.faults()).toEqual([]);
});

test('an unsent formatted message is shown formatted, and returns to the field with its marks', async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  await fieldOf(page).waitFor();
  await page.route('**/messages', (route) =>
    route.request().method() === 'POST' ? route.abort() : route.continue(),
  );
  await fieldOf(page).fill('a **b** c');
  await page.keyboard.press('Enter');
  const message = page.getByRole('log').locator('.bubble.failed');
  await message.waitFor();
  expect(await message.locator('strong').textContent()).toBe('b');
  await page.locator('.failed-row').getByRole('button', { name: 'Edit' }).click();
  await holds(page, 'a **b** c');
  await fieldOf(page).fill('');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

test('the caption of a picture keeps its formatting', async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  const buffer = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  await page
    .locator('input[type="file"]')
    .setInputFiles([{ name: 'notes.txt', mimeType: 'text/plain', buffer }]);
  await fieldOf(page).fill('a _b_');
  await page.keyboard.press('Enter');
  const newest = async () => (await itemsOf(world.service.app(alice, 'GET', `${path()}?limit=1`)))[0];
  await expect.poll(async () => (await newest()).caption).toBe('a b');
  expect((await newest()).caption_entities).toEqual([{ type: 'italic', offset: 2, length: 1 }]);
});

test('typing `@` lists members, and a member can be chosen with the keyboard', async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  const field = fieldOf(page);
  await field.click();
  await page.keyboard.type('hi @');
  await expect.poll(() => optionsOf(page).count()).toBe(2);
  expect(await field.getAttribute('aria-controls')).not.toBeNull();
  const active = async () => {
    const id = await field.getAttribute('aria-activedescendant');
    return page.locator(`[id="${id}"]`).innerText();
  };
  const first = await active();
  await page.keyboard.press('ArrowDown');
  await expect.poll(active).not.toBe(first);
  await page.keyboard.press('ArrowUp');
  await expect.poll(active).toBe(first);
  await page.keyboard.type(bob.username.slice(0, 2));
  await expect.poll(() => optionsOf(page).count()).toBe(1);
  await page.keyboard.press('Escape');
  await expect.poll(() => optionsOf(page).count()).toBe(0);
  expect(await field.getAttribute('aria-controls')).toBeNull();
  await page.keyboard.type(bob.username.slice(2, 3));
  await optionsOf(page).waitFor();
  await page.keyboard.press('Enter');
  await holds(page, `hi @${bob.username} `);
  await page.keyboard.type(`and @${bot.username.slice(0, 4)}`);
  await optionsOf(page).waitFor();
  await page.keyboard.press('Tab');
  await holds(page, `hi @${bob.username} and @${bot.username} `);
  await page.keyboard.type('@nobody_at_all');
  await expect.poll(() => optionsOf(page).count()).toBe(0);
  await page.keyboard.press('Enter');
  await sent(`hi @${bob.username} and @${bot.username} @nobody_at_all`);
  expect(world.faults()).toEqual([]);
});

test('a code block shows its language, and a button copies the code', async () => {
  const code = 'const a = 1;\nconst b = 2;';
  const entities = [{ type: 'pre', offset: 6, length: code.length, language: 'ts' }];
  await resultOf(world.service.app(bob, 'POST', path(), { text: `Code:\n${code}`, entities }));
  const page = await world.open(alice, `#/chat/${group}`);
  const block = page.locator('.code-block').last();
  await block.getByText('ts', { exact: true }).waitFor();
  await block.getByRole('button', { name: 'Copy code' }).click();
  await page.getByRole('status').getByText('Copied').waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(code);
});

test.each([
  ['light', 1_440],
  ['dark', 390],
  ['light', 320],
] as const)(
  'in the %s look, %i pixels wide, toolbar, list and code are accessible and fit',
  async (look, width) => {
    const page = await world.open(alice, '', {
      ...{ colorScheme: look, bypassCSP: true, viewport: { width, height: 800 } },
    });
    await page.goto(`${world.wire.url}/app#/chat/${group}`);
    await page.locator('.code-block').last().waitFor();
    const fits = async (selector: string) => {
      const box = await page.locator(selector).first().boundingBox();
      expect(box?.x).toBeGreaterThanOrEqual(0);
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(width);
    };
    await fieldOf(page).fill('שלום עולם');
    await select(page, 'עולם');
    await toolbarOf(page).waitFor();
    expect(await violations(page, '.formatting')).toEqual([]);
    await fits('.formatting');
    await fits('.formatting button:last-child');
    await toolbarOf(page).getByRole('button', { name: 'Quote' }).click();
    await holds(page, '> שלום עולם');
    await fieldOf(page).fill('');
    await page.keyboard.type('@');
    await optionsOf(page).first().waitFor();
    for (const part of ['.suggestions', '.code-block']) expect(await violations(page, part)).toEqual([]);
    await fits('.suggestions');
    await fits('.code-block');
  },
);
