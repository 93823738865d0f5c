/** Tests how people attach files: the tray, the drop zone, the progress of uploads, and failed uploads. */
import type { Page } from 'playwright-core';
import { expect, test, vi } from 'vitest';
import { png } from '../support/samples.js';
import { itemsOf, type TestUser } from '../support/service.js';
import { onSharedWorld, type World } from './world.js';

vi.setConfig({ testTimeout: 120_000 });

let world: World;
let alice: TestUser;
let bob: TestUser;

onSharedWorld(async (opened) => {
  world = opened;
  [alice, bob] = await Promise.all([world.service.newUser('alice'), world.service.newUser('bob')]);
});

interface Given {
  readonly name: string;
  readonly mimeType: string;
  readonly buffer: Buffer;
}

/** Returns a picture. The width of a picture identifies it. */
const picture = (width: number): Given => ({
  name: `${width}.png`,
  mimeType: 'image/png',
  buffer: png(width, 48),
});
const note = (name: string, bytes = 100): Given => ({
  name,
  mimeType: 'text/plain',
  buffer: Buffer.alloc(bytes, name),
});

interface Sent {
  readonly text?: string;
  readonly caption?: string;
  readonly media_group_id?: string;
  readonly photo?: ReadonlyArray<{ readonly width: number }>;
  readonly document?: { readonly file_name: string };
  readonly reply_to_message?: { readonly text?: string };
}

/** Returns the messages of the chat as Bob sees them, oldest first, without service messages. */
const sentTo = async (chat: number): Promise<Sent[]> =>
  (await itemsOf(world.service.app(bob, 'GET', `/api/chats/${chat}/messages`)))
    .filter(({ text, photo, document }: Sent) => text ?? photo ?? document)
    .reverse();

/** Returns the content of each message: the text, the width of the picture or the name of the file. */
const contentOf = async (chat: number) =>
  (await sentTo(chat)).map(
    ({ text, photo, document }) => text ?? photo?.at(-1)?.width ?? document?.file_name,
  );

const choose = (page: Page, ...files: Given[]) => page.getByLabel('Attach files').last().setInputFiles(files);
const field = (page: Page) => page.getByRole('textbox', { name: 'Message' });
const tray = (page: Page) => page.getByRole('list', { name: 'Attached files' });
const log = (page: Page) => page.getByRole('log');
const send = async (page: Page, text = '') => {
  await field(page).fill(text);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
};

async function openGroup(title: string) {
  const chat = await world.service.newGroup(alice, title, [bob]);
  const page = await world.open(alice, `#/chat/${chat}`);
  await field(page).waitFor();
  return { chat, page };
}

/** Counts the blob URLs of attached files that are not revoked. */
async function countUrls(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(() => {
    const urls = new Set<string>();
    const { createObjectURL, revokeObjectURL } = URL;
    URL.createObjectURL = (blob) => {
      const url = createObjectURL(blob);
      if (blob instanceof File) urls.add(url);
      return url;
    };
    URL.revokeObjectURL = (url) => {
      urls.delete(url);
      revokeObjectURL(url);
    };
    Object.assign(window, { urls });
  });
  return () => page.evaluate(() => (window as unknown as { urls: Set<string> }).urls.size);
}

/**
 * Limits uploads to this many bytes per second. Returns a function that removes the limit, because only the DevTools
 * session that set the limit can remove it.
 */
async function slowDown(page: Page, bytes_per_s: number): Promise<() => Promise<void>> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Network.enable');
  const limit = async (uploadThroughput: number) => {
    const conditions = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput };
    await devtools.send('Network.emulateNetworkConditions', conditions);
  };
  await limit(bytes_per_s);
  return () => limit(-1);
}

test('chosen pictures are shown in a tray, can be removed, and are sent as one album with a caption', async () => {
  const { chat, page } = await openGroup('Sea');
  const urls = await countUrls(page);
  await choose(page, picture(61), picture(62));
  await choose(page, picture(63));
  await expect.poll(() => tray(page).locator('img').count()).toBe(3);
  expect(await urls()).toBe(3);
  await page.getByText('Files: 3').waitFor();
  await expect.poll(() => field(page).getAttribute('placeholder')).toBe('Add a caption');
  await page.getByRole('button', { name: 'Remove 62.png' }).click();
  await expect.poll(() => tray(page).locator('img').count()).toBe(2);
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label'));
  await expect.poll(focused).toBe('Remove 63.png');
  await send(page, 'At sea');
  await expect.poll(() => contentOf(chat)).toEqual([61, 63]);
  const [first, second] = await sentTo(chat);
  expect([first?.caption, second?.caption]).toEqual(['At sea', undefined]);
  expect(first?.media_group_id).toBe(second?.media_group_id);
  expect(first?.media_group_id).toBeDefined();
  await expect.poll(() => tray(page).count()).toBe(0);
  await expect.poll(() => log(page).locator('.album .tile').count()).toBe(2);
  await expect.poll(urls).toBe(0);
  expect(await field(page).inputValue()).toBe('');
  expect(world.faults()).toEqual([]);
});

test('text and files of several kinds are sent in the order in which the person wrote and chose them', async () => {
  const { chat, page } = await openGroup('Order');
  await slowDown(page, 200_000);
  await send(page, 'before');
  await choose(page, picture(61), note('a.txt', 100_000), note('b.txt'), picture(62));
  await send(page, 'all of it');
  await send(page, 'after');
  await expect.poll(() => contentOf(chat)).toEqual(['before', 61, 'a.txt', 'b.txt', 62, 'after']);
  const sent = await sentTo(chat);
  expect(sent.map(({ caption }) => caption)).toEqual([
    ...[undefined, 'all of it'],
    ...Array(4).fill(undefined),
  ]);
  expect(sent[2]?.media_group_id).toBe(sent[3]?.media_group_id);
});

test('Escape empties the tray, and the next message has no files', async () => {
  const { chat, page } = await openGroup('Escape');
  await choose(page, picture(61));
  await tray(page).waitFor();
  await field(page).press('Escape');
  await tray(page).waitFor({ state: 'detached' });
  await send(page, 'only text');
  await expect.poll(() => contentOf(chat)).toEqual(['only text']);
});

/** Dispatches an event that carries files, as a browser does for files from outside of the page. */
const give = (page: Page, selector: string, type: string, names: readonly string[], text = '') =>
  page.locator(selector).evaluate(
    (element, given) => {
      const data = new DataTransfer();
      for (const name of given.names) data.items.add(new File(['content'], name, { type: 'text/plain' }));
      if (given.text) data.setData('text/rtf', given.text);
      const options = { bubbles: true, cancelable: true };
      const event =
        given.type === 'paste'
          ? new ClipboardEvent('paste', { ...options, clipboardData: data })
          : new DragEvent(given.type, { ...options, dataTransfer: data });
      element.dispatchEvent(event);
      return event.defaultPrevented;
    },
    { type, names, text },
  );

/** Drags a file over the chat until the page reacts, because the page loads the code for dropped files later. */
const dragOver = (page: Page) =>
  expect.poll(() => give(page, '.main', 'dragover', ['a.txt']), { timeout: 30_000 }).toBe(true);

test('files can be dropped only on the open chat, which then shows a drop zone', async () => {
  const { chat, page } = await openGroup('Drop');
  const zone = page.getByText('Drop files here to attach them');
  await dragOver(page);
  await zone.waitFor();
  expect(await give(page, '.sidebar', 'dragover', ['a.txt'])).toBe(true);
  await zone.waitFor({ state: 'detached' });
  // Checks that the browser does not open the file in place of the application.
  expect(await give(page, '.sidebar', 'drop', ['a.txt'])).toBe(true);
  expect(await tray(page).count()).toBe(0);
  await give(page, '.messages', 'dragover', ['a.txt']);
  await zone.waitFor();
  await give(page, '.messages', 'drop', ['a.txt', 'b.txt']);
  await zone.waitFor({ state: 'detached' });
  await expect.poll(() => tray(page).getByRole('listitem').count()).toBe(2);
  await send(page);
  await expect.poll(() => contentOf(chat)).toEqual(['a.txt', 'b.txt']);
});

test('a pasted picture is attached, unless the clipboard also contains formatted text', async () => {
  const { chat, page } = await openGroup('Paste');
  await page.evaluate(
    async (bytes) => {
      const blob = new Blob([new Uint8Array(bytes)], { type: 'image/png' });
      await navigator.clipboard.write([new ClipboardItem({ 'image/png': blob })]);
    },
    [...png(61, 48)],
  );
  await dragOver(page);
  await field(page).press('Control+V');
  await expect.poll(() => tray(page).getByRole('listitem').count()).toBe(1);
  expect(await give(page, '.composer textarea', 'paste', ['text.png'], 'rich')).toBe(false);
  expect(await give(page, '.messages', 'paste', ['b.txt'])).toBe(true);
  await expect.poll(() => tray(page).getByRole('listitem').count()).toBe(2);
  await send(page);
  await expect.poll(() => contentOf(chat)).toEqual([61, 'b.txt']);
});

test('an upload shows the bytes of each file, can be cancelled, and can be sent again', async () => {
  const { chat, page } = await openGroup('Progress');
  const speedUp = await slowDown(page, 150_000);
  // The second file takes a minute, so that the upload still runs when it is cancelled.
  await choose(page, note('one.txt', 150_000), note('two.txt', 9_000_000));
  await send(page, 'two files');
  const bars = log(page).getByRole('progressbar');
  const values = () => bars.evaluateAll((all) => all.map((bar) => (bar as HTMLProgressElement).value));
  await expect.poll(async () => (await values())[1]).toBeGreaterThan(0);
  const [one = 0, two = 0] = await values();
  expect(one).toBe(150_000);
  expect(two).toBeLessThan(9_000_000);
  await log(page).getByText('146 KB / 146 KB').waitFor();
  await log(page).getByRole('button', { name: 'Cancel' }).click();
  await log(page).getByRole('alert').getByText('Not sent').waitFor();
  await expect.poll(() => bars.count()).toBe(0);
  await speedUp();
  // After a reload, the cancelled message is still not sent.
  await page.reload();
  await log(page).getByRole('alert').getByText('Not sent').waitFor();
  await send(page, 'meanwhile');
  await expect.poll(() => contentOf(chat)).toEqual(['meanwhile']);
  await log(page).getByRole('button', { name: 'Try again' }).click();
  await expect.poll(() => contentOf(chat)).toEqual(['meanwhile', 'one.txt', 'two.txt']);
  await expect.poll(() => log(page).getByRole('alert').count()).toBe(0);
  expect(world.faults()).toEqual([]);
});

test('an upload stays visible while the messages of an earlier album arrive', async () => {
  const { chat, page } = await openGroup('Album');
  const speedUp = await slowDown(page, 100_000);
  await choose(page, picture(61), picture(62));
  await send(page);
  await choose(page, note('slow.txt', 6_000_000));
  await send(page);
  await expect.poll(() => log(page).locator('.album .picture').count()).toBe(2);
  expect(await log(page).getByRole('progressbar').count()).toBe(1);
  await speedUp();
  await expect.poll(() => contentOf(chat)).toEqual([61, 62, 'slow.txt']);
});

test('a refused upload shows the reason, delays the files sent with it, and can be changed in the tray', async () => {
  const { chat, page } = await openGroup('Refused');
  await send(page, 'question');
  await expect.poll(() => contentOf(chat)).toEqual(['question']);
  await log(page).getByText('question').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Reply' }).click();
  await choose(page, { ...picture(61), buffer: Buffer.from('no picture') }, note('a.txt'));
  await send(page, 'the answer');
  const alerts = log(page).getByRole('alert');
  await alerts.getByText('This picture can’t be read. Use PNG, JPEG or WebP.').waitFor();
  await alerts.getByText('Not sent').waitFor();
  expect(await contentOf(chat)).toEqual(['question']);
  await alerts.getByRole('button', { name: 'Edit' }).first().click();
  await expect.poll(() => tray(page).getByRole('listitem').count()).toBe(2);
  expect(await field(page).inputValue()).toBe('the answer');
  expect(await alerts.count()).toBe(0);
  await page.getByRole('button', { name: 'Remove 61.png' }).click();
  await field(page).press('Enter');
  await expect.poll(() => contentOf(chat)).toEqual(['question', 'a.txt']);
  expect((await sentTo(chat))[1]).toMatchObject({
    caption: 'the answer',
    reply_to_message: { text: 'question' },
  });
});

test('when a person sends a refused upload again, the files that waited for this upload are sent afterwards', async () => {
  const { chat, page } = await openGroup('Again');
  const refusal = { ok: false, error_code: 400, description: 'Bad Request: IMAGE_PROCESS_FAILED' };
  await page.route('**/messages', (route) =>
    route.request().method() === 'POST' ? route.fulfill({ status: 400, json: refusal }) : route.continue(),
  );
  await choose(page, picture(61), note('a.txt'));
  await send(page);
  const alerts = log(page).getByRole('alert');
  await expect.poll(() => alerts.count()).toBe(2);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await alerts.getByRole('button', { name: 'Try again' }).last().click();
  await expect.poll(() => contentOf(chat)).toEqual([61, 'a.txt']);
});

test('files beyond the limits are refused, the error names the limit, and nothing is uploaded', async () => {
  const { chat, page } = await openGroup('Limits');
  const posts: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST' && /messages$|albums$/.test(request.url())) posts.push(request.url());
  });
  const says = (text: string) => page.locator('.note', { hasText: text }).waitFor();
  await choose(page, ...Array.from({ length: 11 }, (_, i) => note(`${i}.txt`)));
  await says('You can send up to 10 files at once.');
  await choose(page, note('none.txt', 0));
  await says('“none.txt” is empty.');
  const drop = (...sizes: number[]) =>
    page.locator('.main').evaluate((main, all) => {
      const dataTransfer = new DataTransfer();
      for (const [i, size] of all.entries())
        dataTransfer.items.add(new File([new Uint8Array(size)], `${i}.bin`));
      main.dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer }));
    }, sizes);
  await dragOver(page);
  await drop(1, 50 * 1_048_576);
  await says('“1.bin” is too large. A file can have up to 50 MB.');
  await drop(30 * 1_048_576, 30 * 1_048_576);
  await says('These files are too large together. You can send up to 50 MB at once.');
  expect(await tray(page).count()).toBe(0);
  await page.route('**/api/me/uploads', (route) =>
    route.fulfill({ json: { ok: true, result: { bytes: 900, bytes_max: 1_000 } } }),
  );
  await choose(page, note('a.txt', 101));
  await send(page);
  await log(page).getByRole('alert').getByText('You do not have enough storage for these files.').waitFor();
  expect(posts).toEqual([]);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await log(page).getByRole('button', { name: 'Try again' }).click();
  await expect.poll(() => contentOf(chat)).toEqual(['a.txt']);
});

test('the application sends an unsent picture that an earlier version of the application stored', async () => {
  const { chat, page } = await openGroup('Before');
  await page.evaluate(
    async ({ user, to, bytes }) => {
      const database = await new Promise<IDBDatabase>((resolve) => {
        const request = indexedDB.open(`petrel-${user}`);
        request.onsuccess = () => resolve(request.result);
      });
      const photo = new File([new Uint8Array(bytes)], 'old.png', { type: 'image/png' });
      const row = { key: 'old-key', chat: to, text: 'old', photo, order: Date.now(), window: 'closed' };
      const transaction = database.transaction('outbox', 'readwrite');
      transaction.objectStore('outbox').put(row);
      await new Promise((resolve) => {
        transaction.oncomplete = resolve;
      });
      database.close();
    },
    { user: alice.id, to: chat, bytes: [...png(61, 48)] },
  );
  await page.reload();
  await expect.poll(() => contentOf(chat)).toEqual([61]);
  expect((await sentTo(chat))[0]?.caption).toBe('old');
});
