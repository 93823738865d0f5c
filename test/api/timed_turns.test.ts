import { expect, test } from 'vitest';
import { ApiError } from '../../src/errors.js';
import { TimedTurns } from '../../src/server/timed_turns.js';
import { VirtualTime } from '../support/virtual_time.js';

const limits = { atOnce: 4, waitingMax: 3, ownWaitingMax: 1, waitMsMax: 5_000 };

function makeTurns(given: Partial<typeof limits> = {}) {
  const time = new VirtualTime();
  const turns = new TimedTurns({ ...limits, ...given }, time);
  const running = new Map<string, () => void>();
  /**
   * Starts a call that runs until the test calls `end` with the name of the call. Resolves to the name of the call. If
   * the call is refused, resolves to the kind of its error.
   */
  const call = (account: number, name: string): Promise<string> =>
    turns
      .run(account, () => new Promise<string>((resolve) => running.set(name, () => resolve(name))))
      .catch((error) => (error instanceof ApiError ? error.kind : Promise.reject(error)));
  return {
    ...{ time, call },
    running: () => [...running.keys()],
    end: async (name: string) => {
      running.get(name)?.();
      running.delete(name);
      await time.advance(0);
    },
  };
}

/** Makes an account busy by a call that takes ten seconds. */
async function tire({ time, call, end }: ReturnType<typeof makeTurns>, accounts: readonly number[]) {
  const calls = accounts.map((account) => call(account, `long ${account}`));
  await time.advance(10_000);
  for (const account of accounts) await end(`long ${account}`);
  await Promise.all(calls);
}

test("an account runs one call at a time, and calls beyond the account's limit of waiting calls are refused", async () => {
  const { time, call, running, end } = makeTurns();
  const calls = [call(1, 'a'), call(1, 'b')];
  await time.advance(0);
  expect(running()).toEqual(['a']);
  expect(await call(1, 'c')).toBe('too_many_requests');
  await end('a');
  expect(running()).toEqual(['b']);
  await end('b');
  expect(await Promise.all(calls)).toEqual(['a', 'b']);
});

test('accounts with long calls get at most half of the slots, so other accounts need not wait', async () => {
  const made = makeTurns();
  const { time, call, running, end } = made;
  await tire(made, [1, 2, 3, 4]);
  const calls = [1, 2, 3, 4].map((account) => call(account, `busy ${account}`));
  await time.advance(0);
  expect(running()).toEqual(['busy 1', 'busy 2']);
  const other = call(5, 'other');
  await time.advance(0);
  expect(running()).toEqual(['busy 1', 'busy 2', 'other']);
  for (const name of ['other', 'busy 1', 'busy 2', 'busy 3', 'busy 4']) await end(name);
  expect(await Promise.all([...calls, other])).toEqual(['busy 1', 'busy 2', 'busy 3', 'busy 4', 'other']);
});

test('accounts with short calls go before accounts with long calls', async () => {
  const made = makeTurns({ atOnce: 1 });
  const { time, call, running, end } = made;
  await tire(made, [1]);
  await tire(made, [2]);
  const calls = [call(3, 'first'), call(1, 'busy 1'), call(2, 'busy 2'), call(4, 'other')];
  await time.advance(0);
  await end('first');
  expect(running()).toEqual(['other']);
  for (const name of ['other', 'busy 1', 'busy 2']) await end(name);
  expect(await Promise.all(calls)).toEqual(['first', 'busy 1', 'busy 2', 'other']);
});

test('a call is refused if it waits too long, or if too many calls are already waiting', async () => {
  const { time, call, running, end } = makeTurns({ atOnce: 1 });
  const first = call(1, 'first');
  const waiting = [2, 3, 4].map((account) => call(account, `waits ${account}`));
  expect(await call(5, 'one too many')).toBe('too_many_requests');
  await time.advance(limits.waitMsMax);
  expect(await Promise.all(waiting)).toEqual(Array(3).fill('too_many_requests'));
  expect(running()).toEqual(['first']);
  await end('first');
  expect(await first).toBe('first');
  const next = call(6, 'next');
  await time.advance(0);
  await end('next');
  expect(await next).toBe('next');
});

test('a call is refused if it waits too long behind another call of its account', async () => {
  const { time, call, running, end } = makeTurns();
  const calls = [call(1, 'first'), call(1, 'waits')];
  await time.advance(limits.waitMsMax);
  await end('first');
  expect(running()).toEqual([]);
  expect(await Promise.all(calls)).toEqual(['first', 'too_many_requests']);
});
