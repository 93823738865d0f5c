/** Tests the end of a session in the browser. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

interface Session {
  readonly token: { set(value: string): void };
  readonly leaving: Set<(token: string) => Promise<void>>;
  signOut(): void;
}
// The application needs the browser type definitions, and tests are compiled without these definitions.
const path = '../../src/web/client/session.ts';
const { leaving, signOut, token }: Session = await import(path);

const reload = vi.fn();
const fetched = vi.fn(async () => new Promise<Response>(() => {}));
const storage = () => ({ getItem: () => null, setItem: () => undefined, removeItem: () => undefined });

beforeEach(() => {
  vi.useFakeTimers();
  for (const [name, value] of Object.entries({ sessionStorage: storage(), localStorage: storage() }))
    vi.stubGlobal(name, value);
  vi.stubGlobal('location', { hash: '', reload });
  vi.stubGlobal('fetch', fetched);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test('a sign-out ends the session even if other work with the token never ends', async () => {
  token.set('secret');
  const endless = () => new Promise<void>(() => {});
  leaving.add(endless);
  signOut();
  leaving.delete(endless);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(reload).toHaveBeenCalledOnce();
  expect(fetched).toHaveBeenCalledExactlyOnceWith('/api/me/session', {
    ...{ method: 'DELETE', headers: { Authorization: 'Bearer secret' }, keepalive: true },
  });
  expect(fetched.mock.invocationCallOrder[0]).toBeLessThan(reload.mock.invocationCallOrder[0] as number);
});
