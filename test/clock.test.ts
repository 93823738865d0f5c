/** Tests that the clock of a process follows Redis, and that a late answer moves it no further than necessary. */
import { beforeEach, expect, test, vi } from 'vitest';

let clock: typeof import('../src/clock.js');
beforeEach(async () => {
  vi.resetModules();
  clock = await import('../src/clock.js');
});

/**
 * Returns the offset of the clock to `base`, in ms. The machine may pause between two readings, so the closest of
 * several pairs counts.
 */
const offset = (base: number) =>
  Math.max(...Array.from({ length: 20 }, () => clock.nowMs() - performance.now())) - base;
/** Makes the answer of a Redis server whose clock shows `ms` milliseconds. */
const answer = (ms: number) => [String(Math.floor(ms / 1_000)), String((ms % 1_000) * 1_000)] as const;
const base = 1_800_000_000_000;
/** Sends a request at `sent`. A server whose clock is `ahead` of `base` answers it at `made`. */
function ask(sent: number, made: number, got: number, ahead = 0): boolean {
  return clock.setClock(answer(base + made + ahead), sent, got);
}

test('the clock of a process assumes that Redis answered in the middle of a short round trip', () => {
  expect(ask(1_000, 1_004, 1_008, 500)).toBe(true);
  expect(offset(base)).toBeCloseTo(500, -1);
});

test.each([
  ['at once', 10_001],
  ['in the middle', 11_500],
  ['at the end', 12_999],
])('an answer of Redis that took 3 s and was made %s does not change the clock', (_, made) => {
  ask(1_000, 1_001, 1_002);
  expect(ask(10_000, made, 13_000)).toBe(false);
  expect(Math.abs(offset(base))).toBeLessThan(3);
});

test('a late Redis answer moves the clock no further than necessary', () => {
  ask(1_000, 1_001, 1_002);
  // Another server, an hour ahead, answered between 10 s and 13 s.
  ask(10_000, 11_500, 13_000, 3_600_000);
  expect(Math.abs(offset(base) - (3_600_000 - 1_500))).toBeLessThan(3);
  ask(20_000, 21_500, 23_000, -3_600_000);
  expect(Math.abs(offset(base) + (3_600_000 - 1_500))).toBeLessThan(3);
});

test('the clock uses the first Redis answer even if it is late', () => {
  expect(ask(10_000, 11_500, 13_000, 7_000)).toBe(false);
  expect(Math.abs(offset(base) - 7_000)).toBeLessThan(3);
});
