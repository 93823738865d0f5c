/**
 * Tests the application in depth: hostile content, the content security policy, a broken stream, the management of
 * bots, and axe on each page.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { itemsOf, resultOf, type TestBot, type TestUser } from '../support/service.js';
import { separateTests, shownMessages, startWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 180_000 });

const cut_ms = 10_000;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let world: World;
let alice: TestUser;
let bob: TestUser;
let bot: TestBot;

beforeAll(async () => {
  world = await startWorld();
  const { service } = world;
  [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  bot = await service.newBot(alice, 'helper');
  await service.openChat(alice, bot);
});
separateTests(() => world);
afterAll(() => world?.stop());

const send = (text: string, more: object = {}) =>
  resultOf(world.service.bot(bot, 'sendMessage', { chat_id: alice.id, text, ...more }));

test('the application shows markup in names, texts, addresses and file names as plain text', async () => {
  const { service } = world;
  const evil = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>';
  await resultOf(service.app(alice, 'PATCH', `/api/me/bots/${bot.id}`, { name: { '': '<b>bold</b><i>x' } }));
  await send(evil);
  await send('look here', {
    entities: [
      { type: 'text_link', offset: 0, length: 4, url: 'https://example.com/"onmouseover="window.hit=1' },
    ],
  });
  await send('press', {
    reply_markup: { inline_keyboard: [[{ text: '<u>key</u>', callback_data: '1' }]] },
  });
  const form = new FormData();
  form.set('chat_id', String(alice.id));
  form.set('document', new Blob(['x']), '<svg onload=hit()>.html');
  await fetch(`${service.fronts[0].url}/bot${bot.token}/sendDocument`, { method: 'POST', body: form });
  const page = await world.open(alice, `#/chat/${bot.id}`);
  const log = page.getByRole('log');
  await log.getByText(evil, { exact: true }).waitFor();
  await log.getByRole('button', { name: '<u>key</u>' }).waitFor();
  await log.getByText('<svg onload=hit()>.html').waitFor();
  await page
    .getByRole('button', { name: /About <b>bold<\/b><i>x/ })
    .first()
    .waitFor();
  expect(await log.getByRole('link', { name: 'look' }).getAttribute('href')).not.toContain('"');
  expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined();
  expect(await log.locator('img[src="x"], script').count()).toBe(0);
  expect(world.faults()).toEqual([]);
});

test('the content security policy blocks injected scripts, markup and other origins', async () => {
  const page = await world.open(alice);
  world.faults();
  const did = await page.evaluate(async () => {
    const outcome: Record<string, string> = {};
    // Counts violations inside the page, because code that a test evaluates is exempt from the policy.
    const blocked: string[] = [];
    document.addEventListener('securitypolicyviolation', (event) => blocked.push(event.effectiveDirective));
    try {
      const script = document.createElement('script');
      script.textContent = 'window.hit = 1';
      document.body.append(script);
    } catch (error) {
      outcome.script = (error as Error).name;
    }
    try {
      const box = document.createElement('div');
      box.innerHTML = '<img src=x onerror="window.hit=1">';
      document.body.append(box);
    } catch (error) {
      outcome.markup = (error as Error).name;
    }
    await fetch('https://example.com/').catch((error: Error) => {
      outcome.fetch = error.name;
    });
    // Waits, because the browser dispatches the events about violations later.
    const all = () => /trusted-types|script-src/.test(blocked.join(' ')) && blocked.includes('connect-src');
    for (let waits = 0; waits < 300 && !all(); waits++)
      await new Promise((resolve) => setTimeout(resolve, 50));
    return { outcome, blocked, hit: (window as { hit?: number }).hit };
  });
  expect(did.hit).toBeUndefined();
  expect(did.outcome).toMatchObject({ markup: 'TypeError', fetch: 'TypeError' });
  expect(did.blocked.join(' ')).toMatch(/trusted-types|script-src/);
  expect(did.blocked).toContain('connect-src');
  world.faults();
});

test(`a chat shows its full history again after ${cut_ms / 1000} s without the event stream, while messages arrive`, async () => {
  const { service, wire } = world;
  const other = await service.newBot(alice, 'busy');
  await service.openChat(alice, other);
  const page = await world.open(alice, `#/chat/${other.id}`);
  await page.getByRole('log').getByText('/start').waitFor();
  const ids: number[] = [];
  let sending = true;
  const traffic = (async () => {
    for (let i = 0; sending; i++) {
      const { message_id } = await resultOf(
        service.bot(other, 'sendMessage', { chat_id: alice.id, text: `number ${i}` }),
      );
      ids.push(message_id);
      const earlier = ids[i - 15];
      if (earlier && i % 3 === 0)
        await service.bot(other, 'editMessageText', {
          chat_id: alice.id,
          message_id: earlier,
          text: `edited ${i}`,
        });
      if (earlier && i % 7 === 0)
        await service.bot(other, 'deleteMessage', { chat_id: alice.id, message_id: earlier });
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
  })();
  // Waits for any later message. A slow page may never draw a particular message, because newer messages move it out of
  // view.
  await page
    .getByRole('log')
    .getByText(/^number \d+$/)
    .last()
    .waitFor();
  wire.cut();
  await new Promise((resolve) => setTimeout(resolve, cut_ms));
  await expect.poll(() => ids.length, { timeout: 60_000 }).toBeGreaterThan(60);
  wire.restore();
  await page.getByRole('heading', { name: 'Chats' }).waitFor();
  sending = false;
  await traffic;
  const last = await send1(other);
  await page.getByRole('log').getByText(last, { exact: true }).waitFor();
  const truth = new Map<number, string>();
  for (let before = 0; ; ) {
    const query = before > 0 ? `?limit=100&before=${before}` : '?limit=100';
    const messages: Array<{ message_id: number; text: string }> = await itemsOf(
      service.app(alice, 'GET', `/api/chats/${other.id}/messages${query}`),
    );
    for (const { message_id, text } of messages) truth.set(message_id, text);
    before = messages.at(-1)?.message_id ?? 0;
    if (messages.length < 100) break;
  }
  const shown = await shownMessages(page);
  expect(truth.size).toBeGreaterThan(40);
  expect([...shown].sort(([a], [b]) => a - b)).toEqual([...truth].sort(([a], [b]) => a - b));
});

async function send1(from: TestBot): Promise<string> {
  const text = 'the very last';
  await resultOf(world.service.bot(from, 'sendMessage', { chat_id: alice.id, text }));
  return text;
}

test('messages written offline are sent automatically, once and in order, after a reconnect', async () => {
  const page = await world.open(alice, `#/chat/${bot.id}`);
  const list = page.getByRole('log');
  const field = page.getByRole('textbox', { name: 'Message' });
  await page.context().setOffline(true);
  world.wire.cut();
  await page.getByRole('heading', { name: 'Connecting…' }).waitFor();
  for (const text of ['adrift one', 'adrift two']) {
    await field.fill(text);
    await page.keyboard.press('Enter');
  }
  await expect.poll(() => list.getByText('No connection. Try again.').count(), { timeout: 30_000 }).toBe(2);
  await page.context().setOffline(false);
  world.wire.restore();
  await expect.poll(() => list.getByText('No connection').count(), { timeout: 30_000 }).toBe(0);
  await expect.poll(() => list.getByText('Sending').count(), { timeout: 30_000 }).toBe(0);
  const mine = async () =>
    (await itemsOf(world.service.app(alice, 'GET', `/api/chats/${bot.id}/messages`)))
      .flatMap(({ text }: { text?: string }) => (text?.startsWith('adrift') ? [text] : []))
      .reverse();
  await expect.poll(mine, { timeout: 30_000 }).toEqual(['adrift one', 'adrift two']);
  expect(world.faults()).toEqual([]);
});

test('a search for a username also finds bots that are not in the chat list', async () => {
  const { service } = world;
  for (const title of ['Mountain huts', 'Mountain bread', 'Sea']) await service.newGroup(bob, title, []);
  const page = await world.open(bob);
  const field = page.getByRole('searchbox');
  const rows = page.locator('.chat-row');
  await field.fill('mount');
  await expect.poll(() => rows.count()).toBe(2);
  await field.fill('mountain b');
  await expect.poll(() => rows.allTextContents()).toEqual([expect.stringContaining('Mountain bread')]);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'About Mountain bread' }).first().waitFor();
  await expect.poll(() => field.inputValue()).toBe('');
  await field.fill(bot.username);
  await page.getByRole('button', { name: `@${bot.username}` }).click();
  await page.getByRole('button', { name: 'Start', exact: true }).waitFor();
  await field.fill('nobody_at_all');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('Nobody has the name').waitFor();
  await page.keyboard.press('Escape');
  await expect.poll(() => rows.count()).toBeGreaterThan(2);
  expect(world.faults()).toEqual([]);
});

test('a person creates a bot, edits its texts, renews its token and transfers it', async () => {
  const { service } = world;
  const page = await world.open(alice, '#/bots');
  const username = `made_${alice.id}_bot`;
  await page.getByRole('button', { name: 'New bot' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill('Maker');
  await dialog.getByLabel('Username').fill(username);
  await dialog.getByRole('button', { name: 'Create' }).click();
  await page.getByText(`@${username}`).waitFor();
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  await page.getByRole('button', { name: 'Copy token' }).click();
  await page.getByText('The token was copied to your clipboard.').waitFor();
  const first = await clipboard();
  expect((await service.bot(first, 'getMe')).status).toBe(200);
  expect(await page.content()).not.toContain(first);
  await page.getByRole('button', { name: 'Issue a new token' }).click();
  await dialog.getByRole('button', { name: 'Issue a new token' }).click();
  await page.getByText('The old token no longer works.').waitFor();
  const second = await clipboard();
  expect((await service.bot(first, 'getMe')).status).toBe(401);
  expect((await service.bot(second, 'getMe')).body.result.username).toBe(username);
  await page.getByRole('link', { name: 'Texts' }).click();
  await page.getByText('Русский').click();
  await page.getByLabel('Description', { exact: true }).fill('ы'.repeat(513));
  await page.getByText('-1 left').waitFor();
  expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true);
  await page.getByLabel('Description', { exact: true }).fill('Делает');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved').waitFor();
  expect((await service.bot(second, 'getMyDescription', { language_code: 'ru' })).body.result).toEqual({
    description: 'Делает',
  });
  await page.getByRole('link', { name: 'Webhook' }).click();
  await page.getByText('None. The bot polls for updates.').waitFor();
  await page.getByRole('link', { name: 'Transfer' }).click();
  await page.getByLabel('Username of the new owner').fill(bob.username);
  await page.getByRole('button', { name: 'Transfer' }).click();
  await dialog.getByLabel(/to confirm/).fill(username);
  await dialog.getByRole('button', { name: 'Transfer' }).click();
  await page.getByText(`@${username} now belongs to @${bob.username}.`).waitFor();
  expect((await service.bot(second, 'getMe')).status).toBe(401);
  const his = await world.open(bob, '#/bots');
  await his.getByRole('link', { name: /Maker/ }).waitFor();
  expect(world.faults()).toEqual([]);
});

test('an avatar and a start picture are cropped in a dialog and stored at their fixed sizes', async () => {
  const { service } = world;
  const page = await world.open(alice, `#/bots/${bot.id}/pictures`);
  const bytes = await page.screenshot({ type: 'jpeg' });
  const dialog = page.getByRole('dialog');
  for (const [label, width, height] of [
    ['Avatar', 512, 512],
    ['Start picture', 640, 360],
  ] as const) {
    await page
      .getByLabel(label, { exact: true })
      .setInputFiles({ name: 'p.jpg', mimeType: 'image/jpeg', buffer: bytes });
    await dialog.locator('img').waitFor();
    await dialog.getByLabel('Zoom').fill('2');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved').last().waitFor();
    await dialog.waitFor({ state: 'detached' });
    const settings = await resultOf(service.app(alice, 'GET', `/api/me/bots/${bot.id}`));
    const picture = label === 'Avatar' ? settings.avatar : settings.start_picture;
    expect(picture).toMatchObject({ width, height });
  }
  expect(world.faults()).toEqual([]);
});

describe('axe finds no serious fault on the pages of the application', () => {
  async function serious(page: Page): Promise<string[]> {
    // Waits, because the contrast of a text is lower while the text fades in.
    await page.waitForFunction(() =>
      document.getAnimations().every(({ playState }) => playState !== 'running'),
    );
    await page.evaluate(axe);
    const found = await page.evaluate(async () => {
      const { axe: run } = window as unknown as {
        axe: {
          run: () => Promise<{
            violations: Array<{ id: string; impact: string; nodes: Array<{ html: string }> }>;
          }>;
        };
      };
      return (await run.run()).violations;
    });
    return found
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
  }

  test.each(['light', 'dark'] as const)(
    'axe finds nothing serious in the %s look, on desktop and phone',
    async (colorScheme) => {
      await send('<b>one</b> <a href="https://example.com">two</a>', {
        parse_mode: 'HTML',
        reply_markup: { inline_keyboard: [[{ text: 'key', callback_data: '1' }]] },
      });
      const out = await world.open(null, '', { colorScheme });
      expect(await serious(out)).toEqual([]);
      await out.context().close();
      const own = `#/bots/${bot.id}`;
      const paths = [
        '',
        `#/chat/${bot.id}`,
        '#/bots',
        own,
        `${own}/texts`,
        `${own}/pictures`,
        `${own}/writers`,
      ];
      paths.push(`${own}/webhook`, `${own}/transfer`, '#/settings', '#/bot/petrelbot');
      const page = await world.open(alice, '', { colorScheme, bypassCSP: true });
      for (const viewport of [
        { width: 1200, height: 800 },
        { width: 390, height: 780 },
      ]) {
        await page.setViewportSize(viewport);
        for (const path of paths) {
          await page.goto(`${world.wire.url}/app${path}`);
          await page
            .locator('.app .main')
            .waitFor({ state: path === '' && viewport.width < 700 ? 'attached' : 'visible' });
          await page.locator('.spinner').first().waitFor({ state: 'detached' });
          expect(await serious(page), `${path} at ${viewport.width}`).toEqual([]);
        }
      }
    },
  );
});
