/** Tests the message that a bot is writing: its text, the button that stops it, and the final message. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { resultOf, type TestBot, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let world: World;
let alice: TestUser;
let bot: TestBot;

onSharedWorld(async (opened) => {
  world = opened;
  alice = await world.service.newUser('alice');
  bot = await world.service.newBot(alice, 'writer');
  await world.service.openChat(alice, bot);
});

const show = (draft_id: number, text: string, more: object = {}) =>
  resultOf(world.service.bot(bot, 'sendMessageDraft', { chat_id: alice.id, draft_id, text, ...more }));
const log = (page: Page) => page.getByRole('log');
const stopButton = (page: Page) => page.getByRole('button', { name: 'Stop' });

async function open(): Promise<Page> {
  const page = await world.open(alice, `#/chat/${bot.id}`);
  await page.getByRole('textbox', { name: 'Message' }).or(page.getByRole('textbox')).first().waitFor();
  return page;
}

test('a draft grows in the chat, and the final message replaces the draft', async () => {
  const page = await open();
  await show(1, '');
  await log(page).getByText('thinking…').waitFor();
  await show(1, '<b>Once</b> upon', { parse_mode: 'HTML', can_stop: true });
  await log(page).getByText('upon').waitFor();
  expect(await log(page).locator('b, strong').getByText('Once').count()).toBe(1);
  await stopButton(page).waitFor();
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { axe: all } = window as unknown as {
      axe: { run: (at: string) => Promise<{ violations: Array<{ id: string }> }> };
    };
    return (await all.run('.messages')).violations.map(({ id }) => id);
  });
  expect(found).toEqual([]);
  await resultOf(world.service.bot(bot, 'sendMessage', { chat_id: alice.id, text: 'Once upon a time' }));
  await log(page).getByText('Once upon a time').waitFor();
  await expect.poll(() => page.locator('.draft').count()).toBe(0);
  expect(await stopButton(page).count()).toBe(0);
  expect(world.faults()).toEqual([]);
});

test('a draft is shown after a reload, and stopping the draft hides it in every window', async () => {
  const [one, other] = [await open(), await open()];
  await show(2, 'A long answer', { can_stop: true });
  await log(one).getByText('A long answer').waitFor();
  await other.reload();
  await log(other).getByText('A long answer').waitFor();
  await stopButton(one).click();
  for (const page of [one, other]) await expect.poll(() => page.locator('.draft').count()).toBe(0);
  await show(2, 'A long answer that goes on', { can_stop: true });
  await show(3, 'Another', { can_stop: true, keep_on_stop: true });
  await log(one).getByText('Another').waitFor();
  expect(await log(one).getByText('goes on').count()).toBe(0);
  await stopButton(other).click();
  await expect.poll(() => stopButton(one).count()).toBe(0);
  expect(await log(one).getByText('Another').count()).toBe(1);
  expect(world.faults()).toEqual([]);
});
