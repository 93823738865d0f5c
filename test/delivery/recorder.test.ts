import { beforeEach, expect, test } from 'vitest';
import type { Outcome } from '../../src/delivery/outcome.js';
import { Recorder } from '../../src/delivery/recorder.js';
import { limits } from '../../src/limits.js';
import type { Delivery } from '../../src/store/webhooks/deliveries.js';
import { VirtualTime } from '../support/virtual_time.js';

const delivery = (n: number) =>
  ({ id: '1', chat: 'c', made: 0, bytes: 10, entry: { shownId: n }, fields: [] }) as unknown as Delivery;
const answered = (status: number): Outcome => ({
  kind: 'answered',
  ...{ status, retryAfterMs: undefined, body: Buffer.alloc(0), truncated: false },
  ...{ latencyMs: 3, address: '127.0.0.1' },
});
const facts = { owner: 1, tries: 1, nextAtMs: null, secrets: [] };
const tick_ms = limits.delivery_attempts_flush_ms;

let time: VirtualTime;
beforeEach(() => {
  time = new VirtualTime();
});

/**
 * Records successful deliveries for `seconds`, at a given rate per second for each bot. Returns when rows were written
 * for each bot, and how many.
 */
async function run(perSecond: ReadonlyMap<number, number>, seconds: number) {
  const written = new Map<number, Array<{ at: number; delivered: number; rows: number }>>();
  const recorder = new Recorder({
    async append(rows, counts) {
      for (const [bot, { delivered }] of counts) {
        const own = written.get(bot) ?? [];
        written.set(bot, own);
        own.push({ at: time.monotonic(), delivered, rows: rows.filter((row) => row.bot === bot).length });
      }
      return [];
    },
    onRefused: () => expect.unreachable(),
    onError: (error) => expect.unreachable(String(error)),
    time,
  });
  recorder.start();
  for (let tenth = 0, n = 0; tenth < seconds * 10; tenth++) {
    for (const [bot, rate] of perSecond)
      for (let i = Math.floor((tenth * rate) / 10); i < Math.floor(((tenth + 1) * rate) / 10); i++)
        recorder.note(bot, delivery(++n), answered(200), null, facts);
    await time.advance(100);
  }
  await recorder.stop();
  return written;
}
const pauses = (times: ReadonlyArray<{ at: number }>) =>
  // Leaves out the last write, because it comes when the recorder stops, and not at a regular time.
  times.slice(1, -1).map(({ at }, i) => at - (times[i]?.at ?? 0));

test('successful deliveries of a quiet bot are recorded within two seconds and one timer tick', async () => {
  const of = (await run(new Map([[1, 2]]), 20)).get(1) ?? [];
  expect(of[0]?.at).toBeLessThanOrEqual(2 * tick_ms);
  expect(Math.max(...pauses(of))).toBeLessThanOrEqual(limits.delivery_successes_flush_ms + tick_ms);
  expect(of.reduce((sum, { rows }) => sum + rows, 0)).toBe(40);
});

test('successful deliveries of busy bots are recorded every five to ten seconds', async () => {
  const bots = Array.from({ length: 20 }, (_, i) => i + 1);
  const written = await run(new Map(bots.map((bot) => [bot, 100])), 40);
  const second = new Set<number>();
  for (const bot of bots) {
    const of = written.get(bot) ?? [];
    expect(of[0]?.at).toBeLessThanOrEqual(2 * tick_ms);
    for (const pause of pauses(of)) {
      expect(pause).toBeGreaterThanOrEqual(limits.delivery_successes_full_flush_ms / 2);
      expect(pause).toBeLessThanOrEqual(limits.delivery_successes_full_flush_ms + tick_ms);
    }
    expect(of.reduce((sum, { delivered }) => sum + delivered, 0)).toBe(4_000);
    expect(Math.max(...of.map(({ rows }) => rows))).toBe(limits.delivery_successes_kept);
    second.add(of[1]?.at ?? 0);
  }
  expect(second.size).toBeGreaterThan(3);
});

test('a failed delivery is recorded at the next timer tick, together with the unrecorded successes', async () => {
  const rows: number[] = [];
  const recorder = new Recorder({
    async append(given) {
      rows.push(given.length);
      return [];
    },
    onRefused: () => expect.unreachable(),
    onError: (error) => expect.unreachable(String(error)),
    time,
  });
  recorder.start();
  recorder.note(1, delivery(1), answered(200), null, facts);
  await time.advance(tick_ms);
  recorder.note(1, delivery(2), answered(200), null, facts);
  await time.advance(tick_ms);
  expect(rows).toEqual([1]);
  recorder.note(1, delivery(3), answered(500), null, facts);
  await time.advance(tick_ms);
  expect(rows).toEqual([1, 2]);
  await recorder.stop();
});
