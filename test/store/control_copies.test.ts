import { setFlagsFromString } from 'node:v8';
import { expect, test } from 'vitest';
import { pack } from '../../src/store/core/codec.js';
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
  const ids = Array.from({ length: 64_000 }, (_, i) => i + 1);
  const began = process.cpuUsage();
  await copies.forgetMany('bot', ids);
  const { user, system } = process.cpuUsage(began);
  expect(new Set(taken).size).toBe(2 * ids.length);
  // The deletion takes about 0.1 s. If each deletion copied the list, 4 x 10^9 entries would be copied, which would
  // take 10 s or more.
  expect((user + system) / 1e6).toBeLessThan(3);
});

setFlagsFromString('--allow-natives-syntax');
const haveSameHiddenClass = new Function('a', 'b', 'return %HaveSameMap(a, b)') as (
  a: unknown,
  b: unknown,
) => boolean;

// A front reads a bot's properties at each call. If the objects for bots had different hidden classes in V8, each read
// would miss the caches of V8 and of the CPU (decision 0078).
test.each([
  ['bot', [7, 'one_bot', 'One', 'hash', {}, '']],
  ['user', ['external', 'Ann', null, null, null, ['hash'], '']],
  ['member', ['member', {}, false]],
] as const)('all records of a %s have the same hidden class', async (subject, fields) => {
  const bytes = Buffer.concat([1, 1, ...fields].map(pack));
  // The first bytes are the header of an array in msgpack.
  const copy = Buffer.concat([Buffer.from([0x90 + 2 + fields.length]), bytes]);
  const scripts = { call: async () => ({ status: 'ok', bytes: copy }) };
  const context = { scripts, keys: makeKeys(1), time: { now: () => 0 }, uniqueText: () => 'token' };
  const copies = new ControlCopies(context as unknown as StoreContext);
  const records: unknown[] = [];
  for (let id = 1; id <= 1_000; id++) records.push(await copies.read(subject, id, id));
  expect(records.filter((record) => !haveSameHiddenClass(record, records[0]))).toEqual([]);
});
