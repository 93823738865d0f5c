/**
 * Starts a service for all tests of a file. In this service, a bot is transferred only if its recipient accepts the
 * offer.
 */
import { test } from 'vitest';
import { type Service, startService } from '../support/service.js';

// biome-ignore lint/correctness/noEmptyPattern: the runner reads the names of other fixtures from the pattern
const shared = test.extend('service', { scope: 'file' }, async ({}, { onCleanup }) => {
  const service = await startService({ combined: true, fronts: 2, extraEnv: { TRANSFER_CONSENT: '1' } });
  onCleanup(() => service.stop());
  return service;
});

/** Passes the service to `begin` before the tests. The service runs until all tests of the file have ended. */
export const onConsentService = (begin: (service: Service) => unknown) =>
  shared.beforeAll(({ service }) => begin(service));
