/**
 * Tests the conditions that durable calls wait for (decision 0055). The test controls each read, each hint, each lost
 * connection and the time.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ScriptRunner } from '../../src/redis/scripts/scripts.js';
import type { StoreContext } from '../../src/store/core/context.js';
import { type Changes, Durability } from '../../src/store/core/durability.js';
import { makeKeys } from '../../src/store/core/keys.js';
import { storeLimits as limits } from '../../src/store/limits.js';
import { VirtualTime } from '../support/virtual_time.js';

const keys = makeKeys(4);
const partition = 1;
const run = 'run a';

let time: VirtualTime;
let durability: Durability;
/** What the next read of the journal returns. */
let journal: { under: string; first: number | null; last: number | null };
let reads: number;
let requests: string[];
let announce: (hint: Buffer) => void;
/** Ends the caller's connection. Undefined until the call listens for the end of the connection. */
let disconnect: (() => void) | undefined;

beforeEach(() => {
  time = new VirtualTime();
  journal = { under: run, first: 5, last: 5 };
  reads = 0;
  requests = [];
  disconnect = undefined;
  const call = async (name: string, _: number, __: object, args: { readonly hint: string }) => {
    if (name === 'journal/progress') {
      reads++;
      return { ...journal };
    }
    requests.push(args.hint);
    return {};
  };
  const listen = async (_: string, listener: (hint: Buffer) => void) => {
    announce = listener;
    return () => undefined;
  };
  const scripts = { call } as unknown as ScriptRunner;
  durability = new Durability({ scripts, keys, time } as unknown as StoreContext, { listen });
});

const flushed = (version: number) => announce(Buffer.from(`${partition} ${version}`));

/**
 * Runs a durable call. The call changed its partition while `under` was the run id. As soon as the call has an outcome,
 * `is` in the returned object shows the outcome.
 */
function start({ account = 7, under = run, bytes = 10, isGone = false, work = Promise.resolve() } = {}) {
  const outcome = { is: 'waits' };
  const listening = {
    account,
    onGone: (listener: () => void) => {
      disconnect = listener;
      if (isGone) listener();
    },
  };
  durability
    .run(
      listening,
      async (changes: Changes) => {
        changes.set(partition, under);
        await work;
      },
      () => bytes,
    )
    .then(
      () => {
        outcome.is = 'confirmed';
      },
      ({ kind }) => {
        outcome.is = kind;
      },
    );
  return outcome;
}
/**
 * Waits until the call has sent its read of the journal and its request for a flush. A call sends them only after a
 * turn of the event loop.
 */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await time.advance(0);
}
const idle = { waiting: 0, bytes: 0 };
const laterIncarnation = 3 * limits.versions_per_incarnation + 1;

// Waits until the requests of this test were sent, so that the next test does not count them.
afterEach(settled);

describe('a durable call', () => {
  test('a durable call is confirmed when the version of its change is announced, and not when an earlier version is announced', async () => {
    const outcome = start();
    await settled();
    flushed(4);
    await settled();
    expect(outcome.is).toBe('waits');
    flushed(5);
    await settled();
    expect(outcome.is).toBe('confirmed');
    expect(durability.stats).toEqual({ ...idle, confirmed: 1, unconfirmed: 0 });
  });

  test.each([
    ['its version', 5, 'confirmed'],
    ['a later incarnation', laterIncarnation, 'not_durable'],
  ])('a durable call that starts after %s was announced is answered at once', async (_, version, answer) => {
    start();
    await settled();
    flushed(version);
    const outcome = start();
    await settled();
    expect(outcome.is).toBe(answer);
  });

  test('a durable call gets an error if a newer incarnation of its partition is announced', async () => {
    const outcome = start();
    await settled();
    flushed(laterIncarnation);
    await settled();
    expect(outcome.is).toBe('not_durable');
  });

  test.each([
    ['was empty', null, 'confirmed'],
    ['had lost its oldest entries', 6, 'confirmed'],
    ['still had the entry', 5, 'waits'],
  ])('a durable call needs no announcement after a read whose journal %s', async (_, first, answer) => {
    const outcome = start();
    await settled();
    journal.first = first;
    await time.advance(limits.durable_look_ms);
    expect(outcome.is).toBe(answer);
  });

  test.each([
    ['before the newest entry was read', 0],
    ['after it', limits.durable_look_ms],
  ])('a durable call gets an error if Redis was replaced %s', async (_, ms) => {
    const replaced = { under: 'run b', first: null, last: null };
    if (ms === 0) journal = replaced;
    const outcome = start();
    await settled();
    journal = replaced;
    await time.advance(ms);
    expect(outcome.is).toBe('not_durable');
  });

  test('a durable call requests a flush with each read of the journal', async () => {
    start();
    await settled();
    expect([reads, requests]).toEqual([1, [String(partition)]]);
    await time.advance(3 * limits.durable_look_ms);
    await settled();
    expect([reads, requests]).toEqual([4, Array(4).fill(String(partition))]);
  });

  test('durable calls in one turn of the event loop share one read of the journal and one request for a flush', async () => {
    const outcomes = Array.from({ length: 12 }, () => start());
    await settled();
    expect([reads, requests.length]).toEqual([1, 1]);
    flushed(5);
    await settled();
    expect(outcomes.map(({ is }) => is)).toEqual(outcomes.map(() => 'confirmed'));
  });

  test('a durable call that is not confirmed gets an error after five seconds', async () => {
    const outcome = start();
    await settled();
    await time.advance(limits.durable_wait_ms_max - 1);
    expect(outcome.is).toBe('waits');
    await time.advance(limits.durable_look_ms);
    expect(outcome.is).toBe('not_durable');
    expect(durability.stats).toEqual({ ...idle, confirmed: 0, unconfirmed: 1 });
  });
});

describe('the number of durable calls is limited', () => {
  const never = new Promise<void>(() => undefined);
  const startMany = (count: number, account: (i: number) => number) => {
    for (let i = 0; i < count; i++) start({ account: account(i), work: never });
  };
  const next = async (account: number) => {
    const outcome = start({ account });
    await settled();
    return outcome.is;
  };

  test('the number of durable calls of all accounts is limited', async () => {
    startMany(limits.durable_calls_max - 1, (i) => i);
    expect(await next(-1)).toBe('waits');
    expect(await next(-2)).toBe('too_many_requests');
  });

  test('the number of durable calls of each account is limited', async () => {
    startMany(limits.durable_calls_per_account_max - 1, () => 1);
    expect([await next(1), await next(1), await next(2)]).toEqual(['waits', 'too_many_requests', 'waits']);
    flushed(5);
    await settled();
    expect(await next(1)).toBe('confirmed');
  });

  test('the bytes of durable answers are limited for each account and for all accounts', async () => {
    const each = limits.durable_bytes_per_account_max;
    start({ account: 1, bytes: each });
    await settled();
    expect([await next(1), await next(2)]).toEqual(['too_many_requests', 'waits']);
    for (let account = 3; account < 3 + limits.durable_bytes_max / each; account++)
      start({ account, bytes: each });
    await settled();
    expect(await next(2)).toBe('too_many_requests');
  });

  test('a waiting durable call ends when its caller disconnects', async () => {
    const outcome = start();
    await settled();
    disconnect?.();
    await settled();
    expect(outcome.is).toBe('not_durable');
    expect(durability.stats).toEqual({ ...idle, confirmed: 0, unconfirmed: 0 });
  });

  test('a durable call ends immediately if its caller disconnected while the scripts of the call ran', async () => {
    const outcome = start({ isGone: true });
    await settled();
    expect(outcome.is).toBe('not_durable');
    expect(durability.stats).toEqual({ ...idle, confirmed: 0, unconfirmed: 0 });
  });
});
