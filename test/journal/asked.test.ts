/** Tests the pauses of a flusher, which a caller may end early. */
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

/** Counts the entries in the internal sets of the signal, such as its dependent signals. */
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

test('a pause ends when the flusher stops, and does not start afterwards', async () => {
  const { sleep } = start();
  const stopping = new AbortController();
  const pause = sleep(60_000, stopping.signal);
  expect(await within(20, pause)).toBe('late');
  stopping.abort();
  expect(await within(1_000, pause)).toBeUndefined();
  expect(await within(1_000, sleep(60_000, stopping.signal))).toBeUndefined();
});

test('only journals with a requested flush are due, and they are due again after the first batch', () => {
  let request = (_: Buffer) => {};
  const listen = async (_: string, listener: (hint: Buffer) => void) => {
    request = listener;
    return () => undefined;
  };
  const asked = createAsked({
    hints: { listen: listen as Hints['listen'] },
    runner: { call: async () => undefined } as unknown as ScriptRunner,
    keys: { flushAsked: () => 'asked', flushed: () => 'flushed' } as Keys,
    time: systemTime,
    held: () => [0, 1, 2],
  });
  asked.start();
  const prefix = { partition: 1, entries: [], last: 5, whole: true };
  expect(asked.take([0, 1, 2])).toEqual([]);
  request(Buffer.from('1 7'));
  expect(asked.take([0, 1, 2])).toEqual([1]);
  expect(asked.take([0, 1, 2])).toEqual([]);
  asked.committed([prefix], [1]);
  expect(asked.take([0, 1, 2])).toEqual([1]);
  asked.committed([prefix], [1]);
  expect(asked.take([0, 1, 2])).toEqual([]);
  // A journal that was not read to its end is due until it is.
  asked.committed([prefix], []);
  expect(asked.take([0, 1, 2])).toEqual([1]);
});
