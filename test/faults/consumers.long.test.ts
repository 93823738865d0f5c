/**
 * Kills pollers or streams that share the queue of one bot, under load. No update is lost, and each chat stays in
 * order.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Service, startService } from '../support/service.js';
import { share } from './consumers.js';
import { amount, atMost, long, patienceMs, report } from './report.js';

let service: Service;
beforeAll(async () => {
  service = await startService({ fronts: 2 });
});
afterAll(() => service?.stop());

test.each([
  ['pollers', {}],
  ['streams', { streams: 'all' } as const],
])(
  'R28: killing %s of one bot loses no update, keeps the order, and moves their chats within 5 s',
  async (of, more) => {
    // A poller that has taken over a chat must keep the chat while the test measures. If people send faster than a busy
    // machine processes updates, pollers lose their leases. Therefore `gapMs` is long and `ahead` is small.
    const usual = {
      pollers: 8,
      kills: long ? 20 : 3,
      updates: amount(800, 1_000_000),
      gapMs: 8_000,
      ahead: 2,
    };
    const amounts = { ...usual, ...more };
    const verdict = await share(service, amounts, amount(60_000, 600_000));
    report('R28', `${of} of one bot killed under load`, { ...verdict }, [
      atMost('lost or overtaken in their chat', verdict.lost + verdict.early, 0),
      atMost(
        'longest pause of a chat with unprocessed updates within 10 s after a kill, ms',
        verdict.longestPauseAfterKillMs,
        5_000,
      ),
    ]);
    expect(verdict).toMatchObject({ lost: 0, early: 0, pollers: 8 });
    expect(verdict.updates).toBeGreaterThanOrEqual(amounts.updates);
    expect(verdict.again).toBeGreaterThan(0);
  },
  patienceMs,
);
