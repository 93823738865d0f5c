/** Tests inline queries in the composer: results, choice by mouse and keyboard, paging, failures and buttons. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, expect, test, vi } from 'vitest';
import { itemsOf, resultOf, type TestBot, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let world: World;
let alice: TestUser;
let bot: TestBot;
let group: number;
let running = true;
let answering: Promise<void>;
const queries: string[] = [];

const article = (id: string, description = `Number ${id}`) => ({
  ...{ type: 'article', id, title: `Result ${id}`, description },
  input_message_content: { message_text: `sent ${id}` },
  reply_markup: { inline_keyboard: [[{ text: 'Search again', switch_inline_query_current_chat: 'again' }]] },
});

/** Answers queries as the bot: `none` has no results, `many` has several pages, and `silent` gets no answer. */
async function answer(): Promise<void> {
  for (let offset = 0; running; ) {
    const updates = await resultOf(world.service.bot(bot, 'getUpdates', { offset, timeout: 1 }));
    for (const { update_id, inline_query } of updates) {
      offset = update_id + 1;
      if (!inline_query) continue;
      const { id, query, offset: from } = inline_query;
      queries.push(`${query}|${from}`);
      if (query === 'silent') continue;
      const first = Number(from || 0);
      const results =
        query === 'none' ? [] : Array.from({ length: 20 }, (_, i) => article(String(first + i + 1)));
      await resultOf(
        world.service.bot(bot, 'answerInlineQuery', {
          ...{ inline_query_id: id, results, cache_time: 0 },
          ...(query === 'many' && first < 40 ? { next_offset: String(first + 20) } : {}),
          ...(query === 'button' ? { button: { text: 'Sign in', start_parameter: 'login' } } : {}),
        }),
      );
    }
  }
}

onSharedWorld(async (opened) => {
  world = opened;
  const { service } = world;
  alice = await service.newUser('alice');
  bot = await service.newBot(alice, 'finder');
  group = await service.newGroup(alice, 'Club', []);
  const mode = { enabled: true, placeholder: 'Search numbers' };
  await resultOf(service.app(alice, 'PUT', `/api/me/bots/${bot.id}/inline_mode`, mode));
  answering = answer();
});
afterAll(async () => {
  running = false;
  await answering;
});

const fieldOf = (page: Page) => page.getByRole('textbox', { name: 'Message' });
const resultsOf = (page: Page) => page.getByRole('listbox', { name: `Results from @${bot.username}` });
const newest = async () =>
  (await itemsOf(world.service.app(alice, 'GET', `/api/chats/${group}/messages?limit=1`)))[0];
const type = (page: Page, query: string) => fieldOf(page).fill(`@${bot.username} ${query}`);
const selected = (page: Page) => resultsOf(page).locator('[aria-selected="true"] strong').textContent();

async function open(): Promise<Page> {
  const page = await world.open(alice, `#/chat/${group}`);
  await fieldOf(page).waitFor();
  return page;
}

/** Returns everything that axe finds in the results panel. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { axe: all } = window as unknown as {
      axe: { run: (at: string, options: object) => Promise<{ violations: Array<{ id: string }> }> };
    };
    // The results need no focus for scrolling, because the arrow keys in the text field scroll them.
    const options = { rules: { 'scrollable-region-focusable': { enabled: false } } };
    return (await all.run('.inline-panel', options)).violations.map(({ id }) => id);
  });
}

test('inline results appear above the composer, and a click sends one of them as a message via the bot', async () => {
  const page = await open();
  await type(page, 'cats');
  await resultsOf(page).getByText('Result 1', { exact: true }).waitFor();
  const [panel, field] = await Promise.all([resultsOf(page).boundingBox(), fieldOf(page).boundingBox()]);
  expect((panel?.y ?? 0) + (panel?.height ?? 0)).toBeLessThanOrEqual(field?.y ?? 0);
  expect(await findings(page)).toEqual([]);
  await resultsOf(page).getByText('Result 3', { exact: true }).click();
  await expect
    .poll(newest)
    .toMatchObject({ text: 'sent 3', from: { id: alice.id }, via_bot: { id: bot.id } });
  await page.getByRole('log').getByText(`via @${bot.username}`).waitFor();
  expect(await fieldOf(page).inputValue()).toBe('');
  expect(await resultsOf(page).count()).toBe(0);
  // The person cannot edit the message, so the menu does not offer to edit it.
  await page.getByRole('log').getByText('sent 3').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Delete' }).waitFor();
  expect(await page.getByRole('menuitem', { name: 'Edit' }).count()).toBe(0);
  await page.keyboard.press('Escape');
  // A button of the message writes the username of the bot and a query into the composer.
  await page.getByRole('log').getByRole('button', { name: 'Search again' }).last().click();
  await expect.poll(() => fieldOf(page).inputValue()).toBe(`@${bot.username} again`);
  await resultsOf(page).getByText('Result 1', { exact: true }).waitFor();
  expect(world.faults()).toEqual([]);
});

test('with the keyboard, a person can select a result, load further results and send a result', async () => {
  const page = await open();
  await type(page, 'many');
  await resultsOf(page).getByText('Result 20').waitFor();
  for (let n = 0; n < 19; n++) await fieldOf(page).press('ArrowDown');
  expect(await selected(page)).toBe('Result 20');
  await resultsOf(page).getByText('Result 40').waitFor();
  await fieldOf(page).press('ArrowDown');
  expect(await selected(page)).toBe('Result 21');
  await fieldOf(page).press('Enter');
  await expect.poll(newest).toMatchObject({ text: 'sent 21' });
  expect(queries).toContain('many|20');
});

test('a text that is typed while a result is being sent stays in the field', async () => {
  const page = await open();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let [held, answered] = [0, 0];
  await page.route('**/inline_result', async (route) => {
    held += 1;
    await released;
    await route.fulfill({ response: await route.fetch() });
    answered += 1;
  });
  await type(page, 'held');
  await resultsOf(page).getByText('Result 2', { exact: true }).waitFor();
  await fieldOf(page).press('ArrowDown');
  await fieldOf(page).press('Enter');
  await expect.poll(() => held).toBe(1);
  await fieldOf(page).press('End');
  await fieldOf(page).pressSequentially(' further');
  release();
  await expect.poll(() => answered).toBe(1);
  await expect.poll(newest).toMatchObject({ text: 'sent 2' });
  await page.waitForTimeout(500);
  expect(await fieldOf(page).inputValue()).toBe(`@${bot.username} held further`);
});

test('after Escape closes the inline results, the text can be sent as it is', async () => {
  const page = await open();
  await type(page, 'plain');
  await resultsOf(page).getByText('Result 1', { exact: true }).waitFor();
  await fieldOf(page).press('Escape');
  await resultsOf(page).waitFor({ state: 'detached' });
  await fieldOf(page).press('Enter');
  await expect.poll(newest).toMatchObject({ text: `@${bot.username} plain` });
});

test('the application says if a bot has no results or does not answer, and the username of a person starts no inline query', async () => {
  const page = await open();
  await type(page, '');
  await page.getByText('Search numbers').waitFor();
  await type(page, 'none');
  await page.getByRole('status').getByText('Nothing found').waitFor();
  await type(page, 'silent');
  await page.getByRole('status').getByText('The bot has not answered yet.').waitFor();
  await fieldOf(page).fill(`@${alice.username} hello`);
  await resultsOf(page).waitFor({ state: 'detached' });
  await fieldOf(page).press('Enter');
  await expect.poll(newest).toMatchObject({ text: `@${alice.username} hello` });
});

test('the button above inline results starts the bot, even on a phone', async () => {
  const page = await open();
  await page.setViewportSize({ width: 360, height: 640 });
  await type(page, 'button');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('log').getByText('/start login').waitFor();
});

test('only the window in which the person types sends inline queries', async () => {
  const [page, other] = [await open(), await open()];
  await type(page, 'shared');
  await expect.poll(() => fieldOf(other).inputValue()).toBe(`@${bot.username} shared`);
  await resultsOf(page).getByText('Result 1', { exact: true }).waitFor();
  // Waits longer than the window waits before it sends a query.
  await other.waitForTimeout(1_500);
  expect(queries.filter((query) => query.startsWith('shared'))).toEqual(['shared|']);
  expect(await resultsOf(other).count()).toBe(0);
  await fieldOf(page).fill('');
});

test('the owner turns inline mode on and off', async () => {
  const page = await world.open(alice, `#/bots/${bot.id}/inline`);
  const hint = page.getByLabel('Hint shown after the username');
  await expect.poll(() => hint.inputValue()).toBe('Search numbers');
  await hint.fill('Find a number');
  await page.getByRole('checkbox', { name: 'Tell the bot which results people choose' }).check();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved').waitFor();
  const settings = await resultOf(world.service.app(alice, 'GET', `/api/me/bots/${bot.id}`));
  expect(settings.inline_mode).toEqual({ placeholder: 'Find a number', feedback: true });
});
