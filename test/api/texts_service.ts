/** Starts a service for all tests of a file. Tests can compare its stores before and after refused calls. */
import { test } from 'vitest';
import { type Service, startService } from '../support/service.js';
import { type Watch, watch } from './refused.js';

export interface Watched {
  readonly service: Service;
  readonly seen: Watch;
}

// biome-ignore lint/correctness/noEmptyPattern: the runner reads the names of other fixtures from the pattern
const shared = test.extend('watched', { scope: 'file' }, async ({}, { onCleanup }): Promise<Watched> => {
  const service = await startService({ fronts: 2, flushing: false });
  let seen: Watch | undefined;
  onCleanup(async () => {
    await seen?.close();
    await service.stop();
  });
  seen = await watch(service);
  return { service, seen };
});

/** Calls `begin` with the service and its stores. The service runs until all tests of the file have ended. */
export const onWatchedService = (begin: (watched: Watched) => unknown) =>
  shared.beforeAll(({ watched }) => begin(watched));
