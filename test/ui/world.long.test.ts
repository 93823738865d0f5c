/** Tests that drafts, routes and windows that a browser test leaves behind do not affect the next test of the file. */
import { expect, test, vi } from 'vitest';
import { itemsOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let group: number;
const opened: Array<Awaited<ReturnType<World['open']>>> = [];

onSharedWorld(async (started) => {
  world = started;
  alice = await world.service.newUser('alice');
  group = await world.service.newGroup(alice, 'Harbour');
});

const open = async () => {
  const page = await world.open(alice, `#/chat/${group}`);
  opened.push(page);
  return { page, field: page.getByRole('textbox', { name: 'Message' }) };
};
const drafts = async () =>
  (await itemsOf(world.service.app(alice, 'GET', '/api/me/drafts'))).map(
    ({ text }: { text: string }) => text,
  );

test('a test leaves behind a stored draft, a draft that is being sent, a route and two windows', async () => {
  const [{ page, field }, kept] = [await open(), await open()];
  world.keep(kept.page);
  await field.fill('left behind');
  await expect.poll(drafts).toEqual(['left behind']);
  await kept.page.route('**/messages', (route) => route.abort());
  await page.waitForTimeout(300);
  const isSaving = page.waitForRequest(/\/api\/me\/drafts\//);
  await field.fill('left behind, too');
  await isSaving;
});

test('the next test begins without drafts, routes and windows, except for the windows that are kept', async () => {
  const [closed, kept] = opened;
  expect([closed?.isClosed(), kept?.isClosed()]).toEqual([true, false]);
  expect(await drafts()).toEqual(['']);
  const { field } = await open();
  expect(await field.inputValue()).toBe('');
  const sender = kept?.getByRole('textbox', { name: 'Message' });
  await expect.poll(() => sender?.inputValue()).toBe('');
  await sender?.fill('Sent');
  await kept?.keyboard.press('Enter');
  const texts = async () =>
    (await itemsOf(world.service.app(alice, 'GET', `/api/chats/${group}/messages`))).flatMap(
      ({ text }: { text?: string }) => text ?? [],
    );
  await expect.poll(texts).toEqual(['Sent']);
});
