/**
 * Divides the time of a front's event loop among accounts. An account is a person with all of their bots, or the address of a
 * call without a person.
 *
 * Each call is charged for the time it blocks the loop: parsing, handling up to the first wait, and writing the answer. Refused
 * calls are charged too. An account gets `limits.cpu_share` of the loop, and up to `cpu_burst_ms` of it at once; within that its
 * calls run on arrival. Two kinds of calls wait for a slice, a short time in which waiting calls run:
 * - calls of an account over its share, while other accounts call;
 * - calls with a body of `large_body_bytes_min` or more, each of which takes milliseconds.
 *
 * A slice ends with the first call that passes `cpu_slice_ms`. Then the loop handles what has arrived, so another account waits for
 * one slice at most. Waiting accounts take turns, one call each, so none starves. While calls of others run on arrival, slices take
 * at most half of the time; otherwise they follow each other without a pause.
 *
 * At most `calls_waiting_max` calls and `calls_waiting_bytes_max` of bodies of one account wait. More calls are refused.
 */
import { AsyncResource } from 'node:async_hooks';
import { fail } from '../errors.js';
import { limits } from '../limits.js';

export interface Shares {
  /**
   * Runs `work` at once or in a slice, and returns its result or error. `bytes` is the size of its parameters. Error:
   * `too_many_requests` when too many calls of the account wait.
   */
  run<T>(account: Account, bytes: number, work: () => T | Promise<T>): T | Promise<T>;
  /** Runs a later part of a call at once and charges it. */
  charge<T>(account: Account, work: () => T): T;
}

/** Id of a person, or an address. */
type Account = number | string;

interface Waiting {
  readonly bytes: number;
  readonly begin: () => void;
}

interface Spender {
  /** Time on the clock, in ms, when the share will have paid for all used time. If it is in the future, the account is over its share. */
  paidAt: number;
  waiting: Waiting[];
  waitingBytes: number;
}

/** Smaller calls are charged by sample: reading the clock for each would cost more. */
const measured_bytes_min = 1_024;
const sample_of = 8;
/** Upper bound for one sampled call, because a garbage collection may run in it. */
const sampled_ms_max = 1;
/** An account counts as alone when no other account has called for this long. */
const several_ms = 1_000;
/** Slices pause for this long after a call that ran on arrival. */
const yields_ms = 100;

export interface ShareTimers {
  readonly now: () => number;
  /** Calls `slice` after `ms`, but not before the loop has handled what has arrived. */
  readonly later: (slice: () => void, ms: number) => void;
}

const loop: ShareTimers = {
  now: () => performance.now(),
  later: (slice, ms) => {
    if (ms > 0) setTimeout(slice, ms);
    else setImmediate(slice);
  },
};

export function createShares({ now, later }: ShareTimers = loop): Shares {
  const spenders = new Map<Account, Spender>();
  /** Accounts with waiting calls, in the order of their turns. */
  const turns = new Set<Account>();
  /** The account of the latest call, the start of its run of calls, and the start of the previous run of another account. */
  let latest: Account | undefined;
  let since = Number.NEGATIVE_INFINITY;
  let othersAt = Number.NEGATIVE_INFINITY;
  /** When a call last ran on arrival. Not updated before the first slice. */
  let atOnceAt = Number.NEGATIVE_INFINITY;
  /** No slice starts before this time. */
  let restsUntil = 0;
  let sliceComes = false;

  function spenderOf(account: Account): Spender {
    let spender = spenders.get(account);
    if (spender === undefined) {
      if (spenders.size >= limits.rate_memory_max)
        for (const [each, { waiting }] of spenders) if (waiting.length === 0) spenders.delete(each);
      spender = { paidAt: 0, waiting: [], waitingBytes: 0 };
      spenders.set(account, spender);
    }
    return spender;
  }

  function pay(spender: Spender, at: number, ms: number): void {
    const unused = at - limits.cpu_burst_ms / limits.cpu_share;
    spender.paidAt = Math.max(spender.paidAt, unused) + ms / limits.cpu_share;
  }

  function measure<T>(account: Account, counts: number, work: () => T): T {
    const began = now();
    try {
      return work();
    } finally {
      const ended = now();
      const ms = ended - began;
      pay(spenderOf(account), ended, counts === 1 ? ms : counts * Math.min(ms, sampled_ms_max));
    }
  }

  /** Whether the account is over its share while others call. */
  function mustWait(account: Account): boolean {
    const spender = spenders.get(account);
    if (spender === undefined || spender.paidAt === 0) return false;
    if (spender.waiting.length > 0) return true;
    const at = now();
    return spender.paidAt > at && at - othersAt < several_ms;
  }

  function wait<T>(account: Account, bytes: number, work: () => T | Promise<T>): Promise<T> {
    const spender = spenderOf(account);
    const { waiting } = spender;
    const full =
      waiting.length >= limits.calls_waiting_max ||
      (waiting.length > 0 && spender.waitingBytes + bytes > limits.calls_waiting_bytes_max);
    if (full) fail('too_many_requests', { retry_after: 1 });
    spender.waitingBytes += bytes;
    turns.add(account);
    plan();
    return new Promise<T>((resolve, reject) => {
      // Traces follow the async context in which a call arrived.
      const origin = new AsyncResource('PETREL_CALL');
      const begin = () => {
        try {
          resolve(origin.runInAsyncScope(measure<T | Promise<T>>, undefined, account, 1, work));
        } catch (error) {
          reject(error);
        }
      };
      waiting.push({ bytes, begin });
    });
  }

  function runNext(account: Account): void {
    const spender = spenderOf(account);
    turns.delete(account);
    const { bytes, begin } = spender.waiting.shift() as Waiting;
    spender.waitingBytes -= bytes;
    if (spender.waiting.length > 0) turns.add(account);
    begin();
  }

  function slice(): void {
    const began = now();
    let ended = began;
    for (const account of turns) {
      runNext(account);
      ended = now();
      if (ended - began >= limits.cpu_slice_ms) break;
    }
    if (ended - atOnceAt < yields_ms) restsUntil = ended + (ended - began);
    sliceComes = false;
    if (turns.size > 0) plan();
  }

  function plan(): void {
    if (sliceComes) return;
    sliceComes = true;
    later(slice, Math.max(0, restsUntil - now()));
  }

  return {
    run(account, bytes, work) {
      if (account !== latest) {
        latest = account;
        othersAt = since;
        since = now();
      }
      if (bytes >= limits.large_body_bytes_min || mustWait(account)) return wait(account, bytes, work);
      if (turns.size > 0 || restsUntil > 0) atOnceAt = now();
      if (bytes >= measured_bytes_min) return measure(account, 1, work);
      return Math.random() * sample_of < 1 ? measure(account, sample_of, work) : work();
    },
    charge: (account, work) => measure(account, 1, work),
  };
}
