/**
 * Provides one running service for all test files of a worker that need no special settings. The state of earlier files
 * stays, so each file must create new people, bots and chats. A file must not stop a process or change a setting. Files
 * of one worker run one after another.
 */
import { expect, test } from 'vitest';
import { type Service, startService } from './service.js';

// biome-ignore lint/correctness/noEmptyPattern: the runner reads the names of other fixtures from the pattern
const shared = test.extend('service', { scope: 'worker' }, async ({}, { onCleanup }) => {
  const extraEnv = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', GUESSES_BURST: '0', MEDIA_DAYS: '3650' };
  const service = await startService({ combined: true, fronts: 2, extraEnv });
  onCleanup(() => service.stop());
  return service;
});

/**
 * Starts the service before a file’s tests, within `msMax`. After the tests, checks that the processes of the service
 * still run and that no token is stored in plain text.
 */
export function onSharedService(begin: (service: Service) => unknown, msMax = 120_000): void {
  shared.beforeAll(({ service }) => begin(service), msMax);
  shared.afterAll(async ({ service }) => {
    const roles = [...service.fronts, service.deliver, service.flush];
    expect(roles.filter(({ alive }) => !alive).map(({ role }) => role)).toEqual([]);
    await service.checkTokens();
  });
}
