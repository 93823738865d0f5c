import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { itemsOf, resultOf, type TestBot, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let world: World;
let [alice, bob] = [] as unknown as [TestUser, TestUser];
let bot: TestBot;

onSharedWorld(async (opened) => {
  world = opened;
  const { service } = world;
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  bot = await service.newBot(alice, 'keys');
  await service.openChat(alice, bot);
});

const send = (chat_id: number, text: string, reply_markup?: object, more = {}) =>
  resultOf(world.service.bot(bot, 'sendMessage', { chat_id, text, reply_markup, ...more }));
const newestOf = async (user: TestUser, chat: number) =>
  (await itemsOf(world.service.app(user, 'GET', `/api/chats/${chat}/messages?limit=1`)))[0];
const keysOf = (page: Page) => page.getByRole('region', { name: 'Bot keyboard' });
const fieldOf = (page: Page) => page.getByRole('textbox', { name: 'Message' });

async function reload(page: Page): Promise<void> {
  const loaded = page.waitForResponse(/\/reply_keyboard$/);
  await page.reload();
  await (await loaded).finished();
}

async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { axe: all } = window as unknown as {
      axe: { run: (at: string) => Promise<{ violations: Array<{ id: string }> }> };
    };
    return (await all.run('.reply-keys')).violations.map(({ id }) => id);
  });
}

test('a reply keyboard below the composer survives a reload, and a press sends the text of its button', async () => {
  const page = await world.open(alice, `#/chat/${bot.id}`);
  await fieldOf(page).waitFor();
  const keyboard = [['Yes', 'No'], [{ text: 'My number', request_contact: true }]];
  await send(alice.id, 'Choose', { keyboard, resize_keyboard: true, input_field_placeholder: 'Your choice' });
  await keysOf(page).getByRole('button', { name: 'Yes' }).waitFor();
  expect(await fieldOf(page).getAttribute('placeholder')).toBe('Your choice');
  expect(await findings(page)).toEqual([]);
  for (let n = 0; n < 52; n++) await send(alice.id, `More ${n}`);
  await reload(page);
  await keysOf(page).getByRole('button', { name: 'Yes' }).waitFor();
  const [yes, no] = ['Yes', 'No'].map((name) => keysOf(page).getByRole('button', { name }));
  const places = async () => {
    const all = await Promise.all([yes, no, fieldOf(page)].map((each) => each?.boundingBox()));
    const [ofYes = 0, ofNo = 0, ofField = 0] = all.map((box) => box?.y);
    return { isOneRow: ofYes === ofNo, isBelow: ofYes > ofField };
  };
  await expect.poll(places).toEqual({ isOneRow: true, isBelow: true });
  await fieldOf(page).focus();
  await page.getByRole('button', { name: 'Hide the bot’s keyboard' }).press('Enter');
  await keysOf(page).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Show the bot’s keyboard' }).press('Enter');
  await yes?.press('Enter');
  await expect.poll(() => newestOf(alice, bot.id)).toMatchObject({ text: 'Yes', from: { id: alice.id } });
  expect(await newestOf(alice, bot.id)).not.toHaveProperty('reply_to_message');
  await keysOf(page).getByRole('button', { name: 'My number' }).click();
  await page.getByText('Petrel doesn’t store your phone number').waitFor();
  expect((await newestOf(alice, bot.id)).text).toBe('Yes');
  await send(alice.id, 'Bye', { remove_keyboard: true });
  await keysOf(page).waitFor({ state: 'detached' });
  await reload(page);
  await page.getByRole('log').getByRole('article').first().waitFor();
  expect(await keysOf(page).count()).toBe(0);
  expect(await fieldOf(page).getAttribute('placeholder')).toBe('Message');
  expect(world.faults()).toEqual([]);
});

test('a one-time keyboard closes after a press and can be opened again, and a persistent keyboard cannot be closed', async () => {
  await send(alice.id, 'Once', { keyboard: [['Only']], one_time_keyboard: true });
  const page = await world.open(alice, `#/chat/${bot.id}`);
  const only = keysOf(page).getByRole('button', { name: 'Only' });
  await expect.poll(async () => (await keysOf(page).boundingBox())?.height).toBeGreaterThan(180);
  await only.click();
  await keysOf(page).waitFor({ state: 'detached' });
  await expect.poll(() => newestOf(alice, bot.id)).toMatchObject({ text: 'Only' });
  await page.reload();
  await page.getByRole('button', { name: 'Show the bot’s keyboard' }).click();
  await only.waitFor();
  const { message_id } = await send(alice.id, 'Always', { keyboard: [['Stay']], is_persistent: true });
  await keysOf(page).getByRole('button', { name: 'Stay' }).waitFor();
  expect(await page.getByRole('button', { name: 'Hide the bot’s keyboard' }).count()).toBe(0);
  await resultOf(world.service.bot(bot, 'deleteMessage', { chat_id: alice.id, message_id }));
  await keysOf(page).waitFor({ state: 'detached' });
});

test('a forced reply opens the reply field once per page load, until the person has replied', async () => {
  const page = await world.open(alice, `#/chat/${bot.id}`);
  await fieldOf(page).waitFor();
  const forced = { force_reply: true, input_field_placeholder: 'Full name' };
  const { message_id } = await send(alice.id, 'Your name?', forced);
  const context = page.locator('.composer-context');
  await context.getByText('Your name?').waitFor();
  await page.reload();
  await context.getByText('Your name?').waitFor();
  await page.getByPlaceholder('Full name').fill('Alice');
  await page.keyboard.press('Enter');
  await expect
    .poll(() => newestOf(alice, bot.id))
    .toMatchObject({ text: 'Alice', reply_to_message: { message_id } });
  await reload(page);
  // If the reload cut off the answer to the reply, the reply is sent again. For a moment, the reply is shown twice.
  await expect.poll(() => page.getByRole('log').getByText('Alice', { exact: true }).count()).toBe(1);
  expect(await context.count()).toBe(0);
});

test('a keyboard is shown even if it arrives while the chat is still loading an earlier keyboard', async () => {
  const carol = await world.service.newUser('carol');
  await world.service.openChat(carol, bot);
  await send(carol.id, 'Hello');
  const page = await world.open(carol);
  let answer = () => {};
  let loads = 0;
  await page.route(/\/reply_keyboard$/, async (route) => {
    if (++loads > 1) return route.continue();
    const response = await route.fetch();
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
    await route.fulfill({ response });
  });
  await page.goto(`${world.wire.url}/app#/chat/${bot.id}`);
  await page.getByRole('log').getByText('Hello').waitFor();
  await expect.poll(() => loads).toBe(1);
  await send(carol.id, 'Late keys', { keyboard: [['Late']] });
  await page.getByRole('log').getByText('Late keys').waitFor();
  answer();
  await keysOf(page).getByRole('button', { name: 'Late' }).waitFor();
});

test('in a group, only a mentioned person sees a selective keyboard, and a press replies to the message with the keyboard', async () => {
  const group = await world.service.newGroup(alice, 'Dinner', [bob, bot]);
  const [a, b] = [await world.open(alice, `#/chat/${group}`), await world.open(bob, `#/chat/${group}`)];
  await Promise.all([a, b].map((page) => fieldOf(page).waitFor()));
  const keyboard = [['Soup', 'Salad']];
  const { message_id } = await send(group, `@${bob.username}?`, { keyboard, selective: true });
  await keysOf(b).getByRole('button', { name: 'Salad' }).click();
  await expect
    .poll(() => newestOf(bob, group))
    .toMatchObject({ text: 'Salad', reply_to_message: { message_id } });
  await a.getByRole('log').getByText('Salad').waitFor();
  expect(await keysOf(a).count()).toBe(0);
  expect(world.faults()).toEqual([]);
});
