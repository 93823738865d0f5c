/** The short form of `consumers.long.test.ts`: four pollers or streams, four kills of them and one of a front. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.js';
import { share } from './consumers.js';

let service: Service | undefined;
afterEach(() => service?.stop());

test.each([
  ['pollers', {}],
  ['a stream', { pollers: 1, streams: 'alone' } as const],
  ['streams', { streams: 'all' } as const],
  ['pollers and streams', { streams: 'half' } as const],
])(
  'no update is lost or overtaken in its chat when %s and a front are killed',
  async (_, more) => {
    service = await startService({ fronts: 2 });
    const [, front] = service.fronts;
    const amounts = { pollers: 4, kills: 4, updates: 600, gapMs: 0, ...more };
    const sharing = share(service, amounts, 30_000);
    await sleep(2_000);
    await front?.kill();
    await front?.start();
    const verdict = await sharing;
    expect(verdict).toMatchObject({ lost: 0, early: 0, pollers: amounts.pollers });
    expect(verdict.updates).toBeGreaterThanOrEqual(600);
  },
  120_000,
);
