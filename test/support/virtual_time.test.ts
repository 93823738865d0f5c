/** Tests the virtual clock, and the functions of `Time` that all clocks share. */
import { expect, test } from 'vitest';
import { VirtualTime } from './virtual_time.js';

test('timers fire in the order in which they are due, and timers for the same time fire in the order in which they were set', async () => {
  const time = new VirtualTime();
  const fired: string[] = [];
  const add = (name: string, ms: number) => time.after(ms, () => fired.push(`${name} ${time.monotonic()}`));
  add('late', 30);
  add('first', 10);
  add('second', 10);
  time.cancel(add('cancelled', 20));
  await time.advance(29);
  expect(fired).toEqual(['first 10', 'second 10']);
  await time.advance(1);
  expect(fired).toEqual(['first 10', 'second 10', 'late 30']);
  expect(time.timers).toBe(0);
});

test('promises settle before the next timer fires, so one move of the clock can complete a loop of sleeps', async () => {
  const time = new VirtualTime();
  const turns: number[] = [];
  const loop = async () => {
    for (let n = 0; n < 4; n++) {
      await time.sleep(100);
      turns.push(time.monotonic());
    }
  };
  const done = loop();
  await time.advance(1_000);
  await done;
  expect(turns).toEqual([100, 200, 300, 400]);
  expect(time.monotonic()).toBe(1_000);
});

test('an aborted sleep ends immediately and leaves no timer', async () => {
  const time = new VirtualTime();
  const ending = new AbortController();
  const slept = time.sleep(1_000, { signal: ending.signal });
  expect(time.timers).toBe(1);
  ending.abort();
  await slept;
  await time.sleep(1_000, { signal: ending.signal });
  expect(time.timers).toBe(0);
});

test('a repeating timer fires until it is cancelled', async () => {
  const time = new VirtualTime();
  const at: number[] = [];
  const timer = time.every(300, () => at.push(time.monotonic()));
  await time.advance(1_000);
  time.cancel(timer);
  await time.advance(1_000);
  expect(at).toEqual([300, 600, 900]);
});

test('a wait with a time limit returns the result of the work, or nothing after the limit', async () => {
  const time = new VirtualTime();
  const endless = time.within(50, new Promise<string>(() => {}));
  await time.advance(50);
  expect(await endless).toBeUndefined();
  expect(await time.within(50, Promise.resolve('done'))).toBe('done');
  expect(time.timers).toBe(0);
});

test('if two clocks drift apart, a reply from Redis corrects only the clock that gets the reply', async () => {
  const [exact, fast] = [new VirtualTime(), new VirtualTime({ driftPpm: 1_000 })];
  for (const time of [exact, fast]) time.follow(['2000000000', '0'], 0, 0);
  for (const time of [exact, fast]) await time.advance(60_000);
  expect(exact.now()).toBe(2_000_000_060_000);
  expect(fast.now()).toBe(2_000_000_060_060);
  fast.follow(['2000000060', '0'], fast.monotonic(), fast.monotonic());
  expect(fast.now()).toBe(exact.now());
});

test('tasks with the same interval run at multiples of the interval', async () => {
  const time = new VirtualTime();
  await time.advance(130);
  const at: number[] = [];
  const stop = time.repeat(100, () => at.push(time.monotonic()));
  await time.advance(300);
  stop();
  await time.advance(300);
  expect(at).toEqual([201, 301, 401]);
});
