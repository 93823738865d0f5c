/** Deletes the copies of many control records at once. */
import { expect, test } from 'vitest';
import type { StoreContext } from '../../src/store/core/context.js';
import { ControlCopies } from '../../src/store/core/control.js';
import { makeKeys } from '../../src/store/core/keys.js';

test('deleting the copies of many records takes time proportional to their number', async () => {
  const taken: string[] = [];
  const scripts = {
    call: async (_: string, __: number, { entries }: { entries: string[] }) => {
      for (const entry of entries) taken.push(entry);
      return { status: 'ok' };
    },
  };
  const copies = new ControlCopies({ scripts, keys: makeKeys(1) } as unknown as StoreContext);
  const timeOf = async (count: number) => {
    const ids = Array.from({ length: count }, (_, i) => i + 1);
    taken.length = 0;
    const began = performance.now();
    await copies.forgetMany('bot', ids);
    const ms = performance.now() - began;
    expect(new Set(taken).size).toBe(2 * count);
    return ms;
  };
  // Other processes may slow down one of the runs, so the fastest one counts.
  const fastest = async (count: number) => {
    const times: number[] = [];
    for (let run = 0; run < 3; run++) times.push(await timeOf(count));
    return Math.min(...times);
  };
  // There are four times as many records. Copying the list for each record would take 16 times as long.
  expect((await fastest(64_000)) / (await fastest(16_000))).toBeLessThan(10);
});
