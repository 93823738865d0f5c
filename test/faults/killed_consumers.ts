/**
 * Tests that killed pollers, streams and fronts lose no update. Each test kills pollers or streams of one bot four
 * times, and a front once, while people write to the bot.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.js';
import { type Amounts, share } from './consumers.js';

/**
 * Adds one test per row. A row contains the name of the killed processes, and the options that differ from the default
 * test with four pollers.
 */
export function testKills(rows: ReadonlyArray<readonly [killed: string, more: Partial<Amounts>]>): void {
  let service: Service | undefined;
  afterEach(() => service?.stop());

  test.each(rows)(
    'no update is lost or overtaken in its chat when %s and a front are killed',
    async (_, more) => {
      service = await startService({ combined: true, fronts: 2 });
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
    300_000,
  );
}
