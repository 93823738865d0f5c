/** Starts test servers for the tests of a file. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TestServer, World } from '../../src/testing/client.js';
import { makeCertificate } from '../support/certificates.js';
import { type Receiver, startReceiver } from '../support/receivers.js';

/** Imports the built helpers, because the helpers start the program that is in their own folder. */
export const testing: typeof import('../../src/testing/client.js') = await import(
  new URL('../../dist/testing/client.js', import.meta.url).href
);

const receivers = new Set<Receiver>();

async function closeReceivers(): Promise<void> {
  await Promise.all([...receivers].map((receiver) => receiver.close()));
  receivers.clear();
}

// No server listens at these addresses. A test server ignores these settings.
const elsewhere = { REDIS_URL: 'redis://127.0.0.1:1', DATABASE_URL: 'postgres://127.0.0.1:1/petrel' };

// biome-ignore lint/correctness/noEmptyPattern: the runner reads the names of other fixtures from the pattern
const shared = test.extend('server', { scope: 'file' }, async ({}, { onCleanup }) => {
  const server = await testing.startTestServer({ settings: elsewhere });
  onCleanup(() => server.stop());
  return server;
});

/** Calls `begin` with the test server of the file. The server runs until all tests of the file have ended. */
export function onTestServer(begin: (server: TestServer) => void): void {
  shared.beforeAll(({ server }) => begin(server));
  shared.afterAll(closeReceivers);
}

/** Calls `begin` with a test server that has these settings. The server runs until all tests of the file have ended. */
export function onOwnTestServer(
  settings: Readonly<Record<string, string>>,
  begin: (server: TestServer) => void,
): void {
  let server: TestServer | undefined;
  beforeAll(async () => {
    server = await testing.startTestServer({ settings });
    begin(server);
  });
  afterAll(async () => {
    await server?.stop();
    await closeReceivers();
  });
}

/** Calls a method of a bot over HTTP. */
export async function call(
  root: string,
  token: string,
  method: string,
  params: object = {},
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
): Promise<{ readonly status: number; readonly body: any }> {
  const response = await fetch(`${root}/bot${token}/${method}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(params),
  });
  return { status: response.status, body: await response.json() };
}

const certificate = makeCertificate();

/** Sets a webhook, and returns the texts that its receiver gets. The receiver answers with `status`. */
export async function webhookOf(world: World) {
  const hook = { status: 200, body: '', texts: [] as string[] };
  const receiver = await startReceiver(certificate, (_, response, body) => {
    hook.texts.push(JSON.parse(body.toString()).message.text);
    response.writeHead(hook.status).end(hook.body);
  });
  receivers.add(receiver);
  const form = new FormData();
  form.set('url', `https://localhost:${receiver.port}/`);
  form.set('certificate', new Blob([certificate.cert]), 'cert.pem');
  const path = `${world.apiRoot}/bot${world.bot.token}/setWebhook`;
  expect(await (await fetch(path, { method: 'POST', body: form })).json()).toMatchObject({ ok: true });
  return hook;
}

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** Starts `petrel test-server` on a port that is in use, and returns its exit code and its log. */
export async function runOn(port: string): Promise<{ readonly code: number; readonly log: string }> {
  const { PATH, HOME, TMPDIR } = process.env;
  const child = spawn(process.execPath, [main, 'test-server'], {
    env: { PATH, HOME, TMPDIR, PORT: port },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let log = '';
  child.stdout.on('data', (chunk) => {
    log += chunk;
  });
  const [code] = await once(child, 'close');
  return { code, log };
}
