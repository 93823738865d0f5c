import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { afterAnswer, ageMaxOf, nextTry, readRetryAfter } from '../../src/delivery/schedule.js';
import { limits } from '../../src/limits.js';
import type { UpdateKind } from '../../src/rules/update_kinds.js';

const hour = 3_600_000;
const nowMs = 1_700_000_000_000;

const waitMs = (failures: number, random: number, retryAfterMs?: number) => {
  const next = nextTry({ failures, madeAtMs: nowMs, nowMs, retryAfterMs }, random);
  return next.kind === 'retry' ? next.atMs - nowMs : 'dead';
};
const almost = 1 - 2 ** -53;

test.each([
  [1, 0, 0],
  [2, 1_000, 1_000],
  [3, 2_000, 3_000],
  [4, 4_000, 6_000],
  [5, 8_000, 12_000],
  [6, 16_000, 24_000],
  [7, 32_000, 48_000],
  [8, 60_000, 90_000],
  [9, 60_000, 120_000],
  [10, 60_000, 120_000],
  [700, 60_000, 120_000],
])('after failed attempt %i the wait is between %i and %i ms', (failures, least, most) => {
  expect([waitMs(failures, 0), waitMs(failures, almost)]).toEqual([least, most]);
});

test.each([
  [1, 5_000, 5_000],
  [2, 15_000, 15_000],
  [3, 45_000, 67_500],
  [7, 3_600_000, 5_400_000],
  [700, 3_600_000, 5_400_000],
])(
  'with a retry policy, the wait after failed attempt %i is between %i and %i ms',
  (failures, least, most) => {
    const policy = { first_delay: 5, factor: 3, max_age: 86_400 };
    const at = (random: number) => {
      const next = nextTry({ failures, madeAtMs: nowMs, nowMs, policy }, random);
      return next.kind === 'retry' ? next.atMs - nowMs : 'dead';
    };
    expect([at(0), at(almost)]).toEqual([least, most]);
  },
);

test('a retry policy changes the maximum age of most updates, but not of inline queries', () => {
  const policy = { first_delay: 5, factor: 3, max_age: 60 };
  expect([ageMaxOf('message', policy), ageMaxOf('inline_query', policy)]).toEqual([60_000, 30_000]);
});

test('retries of an inline query end after 30 seconds, and retries of other updates after 24 hours', () => {
  const at = (age: number, kind: UpdateKind) =>
    nextTry({ failures: 3, madeAtMs: nowMs - age, nowMs, ageMaxMs: ageMaxOf(kind) }, 0).kind;
  expect([at(29_999, 'inline_query'), at(30_000, 'inline_query')]).toEqual(['retry', 'dead']);
  for (const kind of ['message', 'callback_query', 'chosen_inline_result'] as const)
    expect([at(24 * hour - 1, kind), at(24 * hour, kind)]).toEqual(['retry', 'dead']);
});

describe('Retry-After', () => {
  test.each([
    [1, 5_000, 5_000],
    [2, 500, 1_000],
    [5, 3_000, 8_000],
    [5, 9_000, 9_000],
    [9, 59 * 60_000, 59 * 60_000],
    [9, 10 * hour, hour],
  ])('after failed attempt %i with Retry-After %i ms, the wait is %i ms', (failures, asked, wait) => {
    expect(waitMs(failures, 0, asked)).toBe(wait);
  });

  test.each<[string, number | undefined]>([
    ['0', 0],
    ['7', 7_000],
    [' 120 ', 120_000],
    ['3600', hour],
    ['3601', hour],
    ['999999999999999', hour],
    ['Tue, 14 Nov 2023 22:13:50 GMT', 30_000],
    ['Tuesday, 14-Nov-23 22:13:50 GMT', 30_000],
    ['Tue Nov 14 22:13:50 2023', 30_000],
    ['Tue, 14 Nov 2023 22:13:20 GMT', 0],
    ['Mon, 13 Nov 2023 00:00:00 GMT', 0],
    ['Sat, 01 Jan 2124 00:00:00 GMT', hour],
    ['Tue, 32 Nov 2023 22:13:50 GMT', undefined],
    ['Tue, 14 Nov 2023 22:13:50 +0100', undefined],
    ['2023-11-14T22:13:50Z', undefined],
    ['-1', undefined],
    ['1.5', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['soon', undefined],
    ['', undefined],
    ['1, 2', undefined],
    ['9999999999999999', undefined],
  ])('Retry-After %j means %s ms', (text, ms) => expect(readRetryAfter(text, nowMs)).toBe(ms));
});

describe('the last retry of an update is made when the update reaches its maximum age', () => {
  const age = limits.webhook_retry_age_ms_max;
  const at = (ageMs: number, random = 0, retryAfterMs?: number) =>
    nextTry({ failures: 50, madeAtMs: nowMs - ageMs, nowMs, retryAfterMs }, random);

  test('the last delivery attempt of an update is made 24 hours after the update was created', () => {
    expect(at(age - 200_000)).toEqual({ kind: 'retry', atMs: nowMs + 60_000 });
    expect(at(age - 60_000)).toEqual({ kind: 'retry', atMs: nowMs + 60_000 });
    expect(at(age - 30_000)).toEqual({ kind: 'retry', atMs: nowMs + 30_000 });
    expect(at(age - 1_000, 0, hour)).toEqual({ kind: 'retry', atMs: nowMs + 1_000 });
    expect(at(age)).toEqual({ kind: 'dead' });
    expect(at(age + hour)).toEqual({ kind: 'dead' });
  });

  test('if a receiver stays down, updates are retried for 24 hours, and the last retries are at least a minute apart', () => {
    fc.assert(
      fc.property(
        fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
        (randoms) => {
          let now = nowMs;
          let failures = 0;
          for (const random of randoms) {
            failures += 1;
            const next = nextTry({ failures, madeAtMs: nowMs, nowMs: now, retryAfterMs: undefined }, random);
            if (next.kind === 'dead') break;
            expect(next.atMs).toBeGreaterThanOrEqual(now);
            expect(next.atMs - now).toBeLessThanOrEqual(limits.webhook_retry_interval_ms_max);
            if (failures > 8 && next.atMs < nowMs + age)
              expect(next.atMs - now).toBeGreaterThanOrEqual(60_000);
            now = next.atMs;
          }
          expect(now).toBe(nowMs + age);
          expect(failures).toBeGreaterThan(age / 120_000);
          expect(failures).toBeLessThan(age / 60_000 + 10);
        },
      ),
      { numRuns: 20 },
    );
  });
});

describe('410', () => {
  type Run = readonly (readonly [afterHours: number, status: number | undefined])[];
  const statuses = (run: Run) => {
    let since: number | undefined;
    let remove = false;
    for (const [afterHours, status] of run)
      ({ goneSinceMs: since, remove } = afterAnswer(since, status, nowMs + afterHours * hour));
    return { since: since === undefined ? undefined : (since - nowMs) / hour, remove };
  };

  test.each<[{ since: number | undefined; remove: boolean }, Run]>([
    [{ since: undefined, remove: false }, [[0, 200]]],
    [{ since: 0, remove: false }, [[0, 410]]],
    [
      { since: 0, remove: false },
      [
        [0, 410],
        [22.9, 410],
      ],
    ],
    [
      { since: 0, remove: true },
      [
        [0, 410],
        [23, 410],
      ],
    ],
    [
      { since: 0, remove: true },
      [
        [0, 410],
        [5, undefined],
        [23, 410],
      ],
    ],
    [
      { since: 0, remove: false },
      [
        [0, 410],
        [23, undefined],
      ],
    ],
    [
      { since: 20, remove: false },
      [
        [0, 410],
        [10, 200],
        [20, 410],
        [24, 410],
      ],
    ],
    [
      { since: 20, remove: true },
      [
        [0, 410],
        [10, 500],
        [20, 410],
        [43, 410],
      ],
    ],
    [
      { since: undefined, remove: false },
      [
        [0, 410],
        [30, 502],
      ],
    ],
  ])('the receiver has the state %j after the answers %j', (expected, run) =>
    expect(statuses(run)).toEqual(expected),
  );
});
