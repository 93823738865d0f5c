/** Tests how a front divides its event loop among accounts. The test controls the clock. */
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import type { Random } from '../../src/random.js';
import { Shares } from '../../src/server/shares.js';

const measured = 2_000;
const large = limits.large_body_bytes_min;

function world() {
  let now = 1_000_000;
  const planned: Array<{ at: number; slice: () => void }> = [];
  const done: string[] = [];
  const plan = (ms: number, slice: () => void) => {
    planned.push({ at: now + ms, slice });
    return { unref: () => expect.fail('a slice keeps the process alive') };
  };
  const shares = new Shares({
    monotonic: () => now,
    after: plan,
    soon: (slice) => void plan(0, slice),
  });
  return {
    shares,
    done,
    planned,
    now: () => now,
    pass: (ms: number) => {
      now += ms;
    },
    call: (account: number, name: string, ms: number, bytes = measured) =>
      shares.run(account, bytes, () => {
        now += ms;
        done.push(name);
      }),
    /** Runs the planned time slice when it is due, and returns its duration. */
    slice() {
      const next = planned.shift();
      if (next === undefined) throw new Error('no slice is planned');
      now = Math.max(now, next.at);
      const began = now;
      next.slice();
      return now - began;
    },
  };
}

function spent() {
  const all = world();
  all.call(1, 'much', 100);
  all.call(2, 'other', 0.1);
  all.done.length = 0;
  return all;
}

test('a call runs on arrival if the calling account is within its share of the event loop', () => {
  const { call, done, planned, pass } = world();
  for (let i = 0; i < 200; i++) {
    call(1, `a${i}`, 1);
    call(2, `b${i}`, 0.1);
    pass(10);
  }
  expect(done).toHaveLength(400);
  expect(planned).toEqual([]);
});

test('a call waits for a time slice if the calling account is over its share of the event loop', async () => {
  const { call, done, slice } = spent();
  const waits = [call(1, 'a', 0.5), call(1, 'b', 0.6), call(1, 'c', 0.5)];
  call(2, 'other', 0.1);
  expect(done).toEqual(['other']);
  slice();
  expect(done).toEqual(['other', 'a', 'b']);
  slice();
  expect(done).toEqual(['other', 'a', 'b', 'c']);
  await Promise.all(waits);
});

test('if no other account makes calls, a call runs immediately even if its account is over its share', () => {
  const { call, done, planned, pass } = spent();
  pass(1_001);
  for (let i = 0; i < 100; i++) call(1, `a${i}`, 5);
  expect(done).toHaveLength(100);
  expect(planned).toEqual([]);
});

test('an account that exceeded its share of the event loop regains its share over time', () => {
  const { call, done, pass } = spent();
  pass(100 / limits.cpu_share);
  call(2, 'other', 0.1);
  call(1, 'a', 0.1);
  expect(done).toEqual(['other', 'a']);
});

test('large calls of one account run in order, each in its own time slice, even if the account is within its share', () => {
  const { call, done, slice } = world();
  for (const name of ['a', 'b', 'c']) call(1, name, 3, large);
  expect(done).toEqual([]);
  const took = [slice(), slice(), slice()];
  expect(done).toEqual(['a', 'b', 'c']);
  expect(took).toEqual([3, 3, 3]);
});

test("large calls get half of the event loop's time while other accounts make calls", () => {
  const { call, slice, planned, now } = spent();
  for (let i = 0; i < 4; i++) call(1, `a${i}`, 4);
  call(2, 'other', 0.1);
  slice();
  expect(planned[0]?.at).toBeCloseTo(now() + 4);
  const quiet = world();
  for (let i = 0; i < 4; i++) quiet.call(1, `a${i}`, 4, large);
  quiet.slice();
  expect(quiet.planned[0]?.at).toBe(quiet.now());
});

test('accounts take turns if several of them wait for a time slice', () => {
  const { call, done, slice } = world();
  for (const name of ['a', 'b', 'c']) call(1, name, 2, large);
  for (const name of ['d', 'e', 'f']) call(2, name, 2, large);
  for (let i = 0; i < 6; i++) slice();
  expect(done).toEqual(['a', 'd', 'b', 'e', 'c', 'f']);
});

test('a refused call is charged to its account', async () => {
  const { shares, call, done, pass, slice } = world();
  const fails = () => {
    pass(100);
    throw new Error('refused');
  };
  expect(() => shares.run(1, measured, fails)).toThrow('refused');
  call(2, 'other', 0.1);
  const later = shares.run(1, measured, fails);
  slice();
  await expect(later).rejects.toThrow('refused');
  const rejects = shares.run(1, measured, () => Promise.reject(new Error('rejected')));
  slice();
  await expect(rejects).rejects.toThrow('rejected');
  expect(done).toEqual(['other']);
});

test('the front measures the cost of some small calls, and estimates the cost of the other small calls', () => {
  const { call, planned, pass } = world();
  for (let i = 0; i < 2_000 && planned.length === 0; i++) {
    call(1, 'a', 0.5, 0);
    call(2, 'other', 0);
    pass(0.5);
  }
  expect(planned).toHaveLength(1);
});

test('an account is also charged for the work that its call does after the call has returned', () => {
  const { shares, call, done, pass } = world();
  shares.charge(1, () => pass(100));
  call(2, 'other', 0.1);
  call(1, 'a', 0.1);
  expect(done).toEqual(['other']);
});

test('a call is refused if its account already has too many waiting calls or too many bytes in waiting calls', () => {
  const { call } = spent();
  const refused = expect.objectContaining({ kind: 'too_many_requests', retryAfter: 1 });
  for (let i = 0; i < limits.calls_waiting_max; i++) call(1, 'a', 1);
  expect(() => call(1, 'a', 1)).toThrow(refused);
  call(3, 'upload', 1, limits.upload_bytes_max);
  expect(() => call(3, 'upload', 1, limits.upload_bytes_max)).toThrow(refused);
  call(4, 'one that is larger', 1, limits.calls_waiting_bytes_max + 1);
});

test('for an account that makes many small calls, the front reads the clock for only a few of them', () => {
  let readings = 0;
  const time = {
    monotonic: () => {
      readings++;
      return 1_000;
    },
    after: () => expect.fail('a call waits'),
    soon: () => expect.fail('a call waits'),
  };
  const draws = Array.from({ length: 8 }, (_, i) => (i + 0.5) / 8);
  let drawn = 0;
  const random = { number: () => draws[drawn++ % draws.length] as number } as Random;
  const shares = new Shares(time, random);
  for (let i = 0; i < 800; i++) shares.run(1, 100, () => undefined);
  // One call in eight is measured, and each measurement reads the clock twice: 800 / 8 × 2 = 200 readings. The first
  // call of an account reads the clock once more.
  expect(readings).toBe(201);
});
