/**
 * Provides a browser, windows in which people are signed in, and the real service behind a connection that tests can
 * cut.
 */
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page, type Request } from 'playwright-core';
import { afterEach, expect, test } from 'vitest';
import { makeCertificate } from '../support/certificates.js';
import { startReceiver } from '../support/receivers.js';
import { temporaryFolder } from '../support/servers.js';
import { type Service, startService, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

export const flags = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Runs Chromium with fewer processes, because they take less processor time to start.
  '--in-process-gpu',
  '--renderer-process-limit=1',
  // Chromium refuses to run its sandbox as root.
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
];

/** `at` is the port to listen on, or 0 for a free port. */
async function startWire(port: number, at: number) {
  const sockets = new Set<Socket>();
  let cut = false;
  const server = createServer((client) => {
    if (cut) {
      client.destroy();
      return;
    }
    const front = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [client, front],
      [front, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        // Ends the connection without destroying it, because the other side may still have to send the last bytes.
        other.end();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(at, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      cut = true;
      for (const socket of sockets) socket.destroy();
    },
    restore() {
      cut = false;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

export interface World {
  readonly service: Service;
  readonly browser: Browser;
  readonly wire: Awaited<ReturnType<typeof startWire>>;
  /** Opens a new window in which the person is signed in. `faults` returns the errors of this window. */
  open(user: TestUser | null, path?: string, options?: Parameters<Browser['newContext']>[0]): Promise<Page>;
  faults(): string[];
  /** Keeps a window open for the next tests of the file. */
  keep(page: Page): void;
  /**
   * Ends a test: connects the windows again, removes all routes, closes the windows that are not kept, and removes the
   * drafts of their people. After a failed test, also clears the errors of `faults`, so that the next test does not
   * fail too.
   */
  endTest(isFailed: boolean): Promise<void>;
  /**
   * Closes the windows and the connection to the service. Also stops the browser and the service, unless other files
   * use them.
   */
  stop(): Promise<void>;
}

/** How long in ms the browser may take to start, and how long a test waits for a page. A busy machine draws pages slowly. */
const patience_ms = 60_000;

const launchBrowser = () =>
  chromium.launch({
    ...{ executablePath: process.env.PETREL_CHROMIUM as string, args: flags, timeout: patience_ms },
  });

// biome-ignore lint/correctness/noEmptyPattern: the runner reads the names of other fixtures from the pattern
const shared = test.extend('browser', { scope: 'worker' }, async ({}, { onCleanup }) => {
  const browser = await launchBrowser();
  onCleanup(() => browser.close());
  return browser;
});

/**
 * Ends each test of the file, even if the test has failed. Windows share the drafts of a person, so a draft or a route
 * that a test leaves behind would change the next test.
 */
export function separateTests(world: () => World | undefined): void {
  afterEach(({ task }) => world()?.endTest(task.result?.state === 'fail'));
}

/** Opens a world with the service and the browser of the worker. Runs `begin` before the tests of the file. */
export function onSharedWorld(begin: (world: World) => unknown): void {
  let service: Service;
  let world: World | undefined;
  onSharedService((running) => {
    service = running;
  });
  shared.beforeAll(async ({ browser }) => {
    world = await openWorld(service, browser);
    await begin(world);
  });
  separateTests(() => world);
  shared.afterAll(() => world?.stop());
}

export async function startWorld(
  frontEnv: Record<string, string> = {},
  extraEnv: Record<string, string> = {},
  combined = false,
  wirePort = 0,
): Promise<World> {
  const service = await startService({ combined, frontEnv, extraEnv });
  const browser = await launchBrowser();
  const world = await openWorld(service, browser, wirePort);
  return {
    ...world,
    async stop() {
      await world.stop();
      await browser.close();
      await service.stop();
    },
  };
}

/** The browser context of a window that is open. */
interface Opened {
  readonly context: BrowserContext;
  readonly user: TestUser | null;
  /** The calls in flight that store a draft. */
  readonly saving: Set<Request>;
  isKept: boolean;
}

const savesDraft = (request: Request) =>
  request.method() === 'PUT' && new URL(request.url()).pathname.startsWith('/api/me/drafts/');

/** Removes all routes of a window. */
async function removeRoutes({ context }: Opened): Promise<void> {
  for (const one of [context, ...context.pages()]) await one.unrouteAll({ behavior: 'ignoreErrors' });
}

/** Closes a window when no call that stores a draft is in flight. Prevents further such calls. */
async function closeWindow({ context, saving }: Opened): Promise<void> {
  await context.route('**/api/me/drafts/**', (route) => route.abort());
  await expect.poll(() => saving.size, { timeout: patience_ms }).toBe(0);
  await context.close();
}

/** Removes the texts that a person has not sent. Skips a person whose token is no longer valid. */
async function removeDrafts(service: Service, user: TestUser): Promise<void> {
  const { status, body } = await service.app(user, 'GET', '/api/me/drafts?limit=100');
  if (status !== 200) return;
  for (const { chat_id, text } of body.result.items)
    if (text !== '') await service.app(user, 'DELETE', `/api/me/drafts/${chat_id}`);
}

async function openWorld(service: Service, browser: Browser, wirePort = 0): Promise<World> {
  const wire = await startWire(service.fronts[0].port, wirePort);
  const windows = new Set<Opened>();
  /** The people whose windows were open since the last test. */
  const people = new Map<number, TestUser>();
  let faults: string[] = [];
  return {
    service,
    browser,
    wire,
    async open(user, path = '', options = {}) {
      const context = await browser.newContext({
        viewport: { width: 1200, height: 800 },
        locale: 'en-GB',
        permissions: ['clipboard-read', 'clipboard-write'],
        ...options,
      });
      const opened: Opened = { context, user, saving: new Set(), isKept: false };
      windows.add(opened);
      if (user) people.set(user.id, user);
      context.on('close', () => windows.delete(opened));
      context.on('request', (request) => savesDraft(request) && opened.saving.add(request));
      context.on('requestfinished', (request) => opened.saving.delete(request));
      context.on('requestfailed', (request) => opened.saving.delete(request));
      context.setDefaultTimeout(patience_ms);
      const page = await context.newPage();
      page.on('pageerror', (error) => faults.push(error.message));
      page.on('console', (message) => {
        if (/Content Security Policy|TrustedHTML|TrustedScript/.test(message.text()))
          faults.push(message.text());
      });
      await page.goto(`${wire.url}/app${path}`);
      if (user) {
        await page.getByLabel('Your token').fill(user.token);
        await page.getByRole('button', { name: 'Sign in', exact: true }).click();
        await page.getByRole('heading', { name: 'Chats' }).waitFor();
      }
      return page;
    },
    faults() {
      const collected = faults;
      faults = [];
      return collected;
    },
    keep(page) {
      for (const one of windows) if (one.context === page.context()) one.isKept = true;
    },
    async endTest(isFailed) {
      wire.restore();
      for (const one of windows) await removeRoutes(one);
      await Promise.all([...windows].filter(({ isKept }) => !isKept).map(closeWindow));
      for (const user of people.values()) await removeDrafts(service, user);
      people.clear();
      for (const { user } of windows) if (user) people.set(user.id, user);
      if (isFailed) faults = [];
    },
    async stop() {
      await Promise.all([...windows].map(({ context }) => context.close()));
      wire.close();
    },
  };
}

/** Returns every message of the open chat by its id, read by scrolling from the newest to the oldest. */
export async function shownMessages(page: Page): Promise<ReadonlyMap<number, string>> {
  const found = new Map<number, string>();
  const list = page.getByRole('log');
  let before = -1;
  for (let still = 0; still < 4; ) {
    const { rows, top } = await list.evaluate((box) => ({
      rows: [...box.querySelectorAll('article[data-id]')].map((row) => [
        Number(row.getAttribute('data-id')),
        row.querySelector('.text')?.textContent ?? '',
      ]),
      top: box.scrollTop,
    }));
    for (const [id, text] of rows as Array<[number, string]>) found.set(id, text);
    still = top === before && top === 0 ? still + 1 : 0;
    before = top;
    await list.evaluate(async (box) => {
      box.scrollBy(0, -box.clientHeight * 0.7);
      // The page begins to load older messages in the frame after the scroll.
      for (let frames = 0; frames < 2; frames++)
        await new Promise((resolve) => requestAnimationFrame(() => resolve(null)));
    });
    await page.locator('.loading-pill').waitFor({ state: 'detached' });
    await page.waitForTimeout(60);
  }
  return found;
}

/** Starts a server for previews of links. The service must have the settings `env` to load its pages. */
export async function startPages(answer: (path: string) => string | null) {
  const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
  const trusted = join(temporaryFolder(), 'pages.pem');
  writeFileSync(trusted, certificate.cert);
  const receiver = await startReceiver(certificate, ({ url = '' }, response) => {
    const page = answer(url);
    response.writeHead(page === null ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(page ?? '');
  });
  return {
    env: { LINK_PREVIEWS: '1', WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', NODE_EXTRA_CA_CERTS: trusted },
    url: `https://127.0.0.1:${receiver.port}`,
    close: () => receiver.close(),
  };
}

/** Starts a webhook receiver that answers with a status set by the test, and records the ids of accepted updates. */
export async function startHook(status: number) {
  const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
  const taken = new Set<number>();
  const receiver = await startReceiver(certificate, (_, response, body) => {
    if (hook.status < 300) taken.add(JSON.parse(body.toString()).update_id);
    response.writeHead(hook.status).end();
  });
  const hook = {
    status,
    taken,
    settings: { url: `https://127.0.0.1:${receiver.port}/`, certificate: certificate.cert },
    close: receiver.close,
  };
  return hook;
}
