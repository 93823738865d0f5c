/** Tests the pauses of a flusher between its rounds. A request for a flush ends the current pause early. */
import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { createAsked } from '../../src/journal/asked.js';
import type { Hints } from '../../src/redis/hints.js';
import type { ScriptRunner } from '../../src/redis/scripts/scripts.js';
import type { Keys } from '../../src/store/core/keys.js';
import { systemTime } from '../../src/time.js';
import { within } from '../support/store.js';

function start() {
  const asked = createAsked({
    hints: undefined,
    runner: {} as ScriptRunner,
    keys: {} as Keys,
    time: systemTime,
    held: () => [0],
  });
  return { asked, sleep: (ms: number, signal: AbortSignal) => asked.sleep(ms, () => [0], signal) };
}

/** Counts the objects that an AbortSignal keeps internally, for example its dependent signals. */
const keptBy = (signal: AbortSignal): number =>
  Object.getOwnPropertySymbols(signal)
    .map((name) => (signal as unknown as Record<symbol, { readonly size?: unknown } | null>)[name]?.size)
    .reduce<number>((sum, size) => sum + (typeof size === 'number' ? size : 0), 0);

test('a pause removes its listeners from the signal that stops the flusher', async () => {
  const { sleep } = start();
  const { signal } = new AbortController();
  await sleep(1, signal);
  const before = keptBy(signal);
  for (let i = 0; i < 10; i++) await sleep(1, signal);
  expect(keptBy(signal)).toBe(before);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a pause of the flusher ends when the flusher stops, and no pause starts afterwards', async () => {
  const { sleep } = start();
  const stopping = new AbortController();
  const pause = sleep(60_000, stopping.signal);
  expect(await within(20, pause)).toBe('late');
  stopping.abort();
  expect(await within(1_000, pause)).toBeUndefined();
  expect(await within(1_000, sleep(60_000, stopping.signal))).toBeUndefined();
});

/**
 * Creates the object under test, for a flusher with three partitions. `told` contains the hints that announced flushes.
 */
function startHearing() {
  let request = (_: Buffer) => {};
  const told: string[] = [];
  const listen = async (_: string, listener: (hint: Buffer) => void) => {
    request = listener;
    return () => undefined;
  };
  const call = async (_: string, __: number, ___: object, { hint }: { readonly hint: string }) => {
    told.push(hint);
  };
  const asked = createAsked({
    hints: { listen: listen as Hints['listen'] },
    runner: { call } as unknown as ScriptRunner,
    keys: { flushAsked: () => 'asked', flushed: () => 'flushed' } as Keys,
    time: systemTime,
    held: () => [0, 1, 2],
  });
  asked.start();
  return { asked, told, request: (hint: string) => request(Buffer.from(hint)) };
}

test('a flush request causes one announcement if the journal is empty, and one after each flush of new entries', async () => {
  const { asked, told, request } = startHearing();
  const upTo = (last: number) => ({ partition: 1, entries: [], last, whole: true });
  await asked.announce([upTo(4)], [1]);
  expect(told).toEqual([]);
  request('1');
  await asked.announce([], [1]);
  await asked.announce([], [1]);
  expect(told).toEqual(['1 4']);
  await asked.announce([upTo(5)], [1]);
  await asked.announce([], [1]);
  expect(told).toEqual(['1 4', '1 5']);
  request('1');
  await asked.announce([], [1]);
  expect(told).toEqual(['1 4', '1 5', '1 5']);
});

test('a failed announcement of a flush is not repeated when the journal is empty', async () => {
  const { asked, told, request } = startHearing();
  request('1');
  const prefix = { partition: 1, entries: [], last: 5, whole: true };
  const failed = asked.announce([prefix], [1], () => Promise.reject(new Error('replaced')));
  await expect(failed).rejects.toThrow('replaced');
  request('1');
  await asked.announce([], [1]);
  expect(told).toEqual([]);
});

test('after a flush request, the journal is read immediately, and again after the first batch', () => {
  const { asked, request } = startHearing();
  const prefix = { partition: 1, entries: [], last: 5, whole: true };
  expect(asked.take([0, 1, 2])).toEqual([]);
  request('1 7');
  expect(asked.take([0, 1, 2])).toEqual([1]);
  expect(asked.take([0, 1, 2])).toEqual([]);
  asked.committed([prefix], [1]);
  expect(asked.take([0, 1, 2])).toEqual([1]);
  asked.committed([prefix], [1]);
  expect(asked.take([0, 1, 2])).toEqual([]);
  // The batch did not reach the end of the journal, so the journal must be read again.
  asked.committed([prefix], []);
  expect(asked.take([0, 1, 2])).toEqual([1]);
});
