/** Starts a test server for the tests of a file. */
import { afterAll, beforeAll } from 'vitest';
import type { TestServer } from '../../src/testing/client.js';

/** The helpers of the build, because they start the program that is beside them. */
export const testing: typeof import('../../src/testing/client.js') = await import(
  new URL('../../dist/testing/client.js', import.meta.url).href
);

/** Calls `begin` with a test server that runs until the file ends. */
export function onTestServer(begin: (server: TestServer) => void): void {
  let server: TestServer | undefined;
  beforeAll(async () => {
    server = await testing.startTestServer();
    begin(server);
  });
  afterAll(() => server?.stop());
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
