/** Tests that the clock of a node follows Redis, and that a late answer moves the clock no further than necessary. */
import { beforeEach, expect, test } from 'vitest';
import { VirtualTime } from './support/virtual_time.js';

let time: VirtualTime;
beforeEach(() => {
  time = new VirtualTime();
});

/** Returns by how many ms the clock differs from `base` plus the elapsed time. */
const offset = () => time.now() - time.monotonic() - base;
/** Makes the answer of a Redis server whose clock shows `ms` milliseconds. */
const answer = (ms: number) => [String(Math.floor(ms / 1_000)), String((ms % 1_000) * 1_000)] as const;
const base = 1_700_000_000_000;
/**
 * Sends a request at `sent`. A server answers the request at `made`. The clock of this server is ahead of `base` by
 * `ahead`.
 */
function ask(sent: number, made: number, got: number, ahead = 0): boolean {
  return time.follow(answer(base + made + ahead), sent, got);
}

test('the clock of a node assumes that Redis answered in the middle of a short round trip', () => {
  expect(ask(1_000, 1_004, 1_008, 500)).toBe(true);
  expect(offset()).toBe(500);
});

test('the clock of a node shows the time of the machine until Redis has answered', async () => {
  expect(time.now()).toBe(time.machine());
  ask(1_000, 1_000, 1_000);
  await time.advance(1_234);
  expect(time.now()).toBe(base + 1_234);
});

test.each([
  ['at once', 10_001],
  ['in the middle', 11_500],
  ['at the end', 12_999],
])('an answer of Redis that took 3 s and was made %s does not change the clock', (_, made) => {
  ask(1_000, 1_001, 1_002);
  expect(ask(10_000, made, 13_000)).toBe(false);
  expect(offset()).toBe(0);
});

test('an answer of Redis with a long round trip moves the clock by the smallest amount that fits the answer', () => {
  ask(1_000, 1_001, 1_002);
  // Another server, whose clock is an hour ahead, answered between 10 s and 13 s.
  ask(10_000, 11_500, 13_000, 3_600_000);
  expect(offset()).toBe(3_600_000 - 1_500);
  ask(20_000, 21_500, 23_000, -3_600_000);
  expect(offset()).toBe(1_500 - 3_600_000);
});

test('the clock uses the first Redis answer even if it is late', () => {
  expect(ask(10_000, 11_500, 13_000, 7_000)).toBe(false);
  expect(offset()).toBe(7_000);
});

test('the signal of a deadline is aborted at the deadline', async () => {
  const signal = time.deadline(1_000);
  await time.advance(999);
  expect(signal.aborted).toBe(false);
  await time.advance(1);
  expect(signal.reason).toMatchObject({ name: 'TimeoutError', message: 'took longer than 1000 ms' });
});
