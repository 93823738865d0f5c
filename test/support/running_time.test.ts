/** Tests the clock that runs by itself and can also be moved forward. */
import { expect, test } from 'vitest';
import { RunningTime } from './running_time.js';

test('a skip of time fires due timers in order, and each timer reads the time at which it is due', () => {
  const time = new RunningTime();
  const began = time.monotonic();
  const fired: string[] = [];
  const at = () => Math.round((time.monotonic() - began) / 1_000);
  const beat = time.every(10_000, () => fired.push(`beat ${at()}`));
  time.after(25_000, () => fired.push(`once ${at()}`));
  time.cancel(time.after(5_000, () => fired.push('cancelled')));
  time.after(60_000, () => fired.push('later'));
  time.skip(30_500);
  expect(fired).toEqual(['beat 10', 'beat 20', 'once 25', 'beat 30']);
  expect(at()).toBeGreaterThanOrEqual(30);
  time.cancel(beat);
});

test('after a skip of time, a timer that is not due yet fires when its remaining time has passed', async () => {
  const time = new RunningTime();
  let isOver = false;
  time.after(60_020, () => {
    isOver = true;
  });
  time.skip(60_000);
  expect(isOver).toBe(false);
  await expect.poll(() => isOver).toBe(true);
});
