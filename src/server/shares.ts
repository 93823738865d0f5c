/**
 * Divides the time of a front's event loop among accounts. An account is a person with all of their bots, or the
 * address of a caller without an account.
 *
 * Each call is charged for the time for which it blocks the loop: parsing, handling up to the first wait, and writing
 * the answer. Refused calls are charged too. An account gets `limits.cpu_share` of the loop, and up to `cpu_burst_ms`
 * of it at once. Within this budget, its calls run on arrival. Two kinds of calls wait for a slice, which is a short
 * time in which waiting calls run:
 * - calls of an account over its share, while other accounts make calls;
 * - calls with a body of `large_body_bytes_min` or more, each of which takes milliseconds.
 *
 * A slice ends with the first call that exceeds `cpu_slice_ms`. The loop then handles the calls that have arrived, so
 * another account waits for one slice at most. Waiting accounts take turns, one call each, so each of them makes
 * progress. While calls of other accounts run on arrival, slices take at most half of the time. Otherwise slices follow
 * each other without a pause.
 *
 * At most `calls_waiting_max` calls of one account wait, with bodies of `calls_waiting_bytes_max` together. Further
 * calls are refused.
 */
import { AsyncResource } from 'node:async_hooks';
import { fail } from '../errors.js';
import { type Random, systemRandom } from '../random.js';
import { storeLimits } from '../store/limits.js';
import { systemTime, type Time } from '../time.js';
import { callLimits as limits } from './limits.js';

type Account = number | string;

interface Waiting {
  readonly bytes: number;
  readonly begin: () => void;
}

interface Spender {
  paidAt: number;
  waiting: Waiting[];
  waitingBytes: number;
}

/** Only a sample of the calls with smaller bodies is timed. Reading the clock for each call would cost too much. */
const measured_bytes_min = 1_024;
const sample_of = 8;
/**
 * If the measured time of a sampled call is longer than this, only this time (in ms) counts. A garbage collection
 * during the call may make the measured time too long.
 */
const sampled_ms_max = 1;
/** If all other accounts have made no call for this long (in ms), an account counts as the only caller. */
const several_ms = 1_000;
/**
 * Waiting calls run in slices. If a newly arrived call has run without waiting within the last `yields_ms`, a pause
 * follows the slice.
 */
const yields_ms = 100;

export type ShareTime = Pick<Time, 'monotonic' | 'after' | 'soon'>;

export class Shares {
  readonly #time: ShareTime;
  readonly #random: Random;
  readonly #spenders = new Map<Account, Spender>();
  readonly #turns = new Set<Account>();
  /** The account that made the latest call. `#since` is when this account's current sequence of calls started. */
  #latest: Account | undefined;
  #since = Number.NEGATIVE_INFINITY;
  /** The start of the last sequence of calls by the previous account, which made calls before `#latest` did. */
  #othersAt = Number.NEGATIVE_INFINITY;
  /**
   * The time at which a call last ran immediately on arrival. Recorded only while calls are waiting, and always
   * after the first pause.
   */
  #atOnceAt = Number.NEGATIVE_INFINITY;
  #restsUntil = 0;
  #sliceComes = false;
  /**
   * The latest reading of the clock. It is recent enough for most decisions. A new reading takes 1 % of the time of a
   * short call.
   */
  #knownAt = Number.NEGATIVE_INFINITY;

  constructor(time: ShareTime = systemTime, random: Random = systemRandom) {
    this.#time = time;
    this.#random = random;
  }

  /**
   * Runs `work` immediately, or later in a slice of waiting calls. `bytes` is the size of the call's parameters. Throws
   * `too_many_requests` if too many calls of the account are waiting.
   */
  run<T>(account: Account, bytes: number, work: () => T | Promise<T>): T | Promise<T> {
    if (account !== this.#latest) {
      this.#latest = account;
      this.#othersAt = this.#since;
      this.#since = this.#now();
    }
    if (bytes >= limits.large_body_bytes_min || this.#mustWait(account))
      return this.#wait(account, bytes, work);
    if (this.#turns.size > 0 || this.#restsUntil > 0) this.#atOnceAt = this.#now();
    if (bytes >= measured_bytes_min) return this.#measure(account, 1, work);
    return this.#random.number() * sample_of < 1 ? this.#measure(account, sample_of, work) : work();
  }

  charge<T>(account: Account, work: () => T): T {
    return this.#measure(account, 1, work);
  }

  #spenderOf(account: Account): Spender {
    let spender = this.#spenders.get(account);
    if (spender === undefined) {
      if (this.#spenders.size >= storeLimits.rate_memory_max)
        for (const [each, { waiting }] of this.#spenders)
          if (waiting.length === 0) this.#spenders.delete(each);
      spender = { paidAt: 0, waiting: [], waitingBytes: 0 };
      this.#spenders.set(account, spender);
    }
    return spender;
  }

  #measure<T>(account: Account, counts: number, work: () => T): T {
    const began = this.#now();
    try {
      return work();
    } finally {
      const ended = this.#now();
      const ms = ended - began;
      const charged = counts === 1 ? ms : counts * Math.min(ms, sampled_ms_max);
      const spender = this.#spenderOf(account);
      const unused = ended - limits.cpu_burst_ms / limits.cpu_share;
      spender.paidAt = Math.max(spender.paidAt, unused) + charged / limits.cpu_share;
    }
  }

  #mustWait(account: Account): boolean {
    const spender = this.#spenders.get(account);
    if (spender === undefined || spender.paidAt === 0) return false;
    if (spender.waiting.length > 0) return true;
    const waitsAt = (at: number) => spender.paidAt > at && at - this.#othersAt < several_ms;
    // Checks with the last clock reading first, because a new reading takes time. If the call need not wait at that
    // time, it need not wait later either.
    return waitsAt(this.#knownAt) && waitsAt(this.#now());
  }

  #now(): number {
    this.#knownAt = this.#time.monotonic();
    return this.#knownAt;
  }

  #wait<T>(account: Account, bytes: number, work: () => T | Promise<T>): Promise<T> {
    const spender = this.#spenderOf(account);
    const { waiting } = spender;
    const full =
      waiting.length >= limits.calls_waiting_max ||
      (waiting.length > 0 && spender.waitingBytes + bytes > limits.calls_waiting_bytes_max);
    if (full) fail('too_many_requests', { retry_after: 1 });
    spender.waitingBytes += bytes;
    this.#turns.add(account);
    this.#plan();
    return new Promise<T>((resolve, reject) => {
      // Keeps the async context in which the call arrived, because traces depend on it.
      const begin = AsyncResource.bind(() => {
        try {
          resolve(this.#measure(account, 1, work));
        } catch (error) {
          reject(error);
        }
      });
      waiting.push({ bytes, begin });
    });
  }

  #runNext(account: Account): void {
    const spender = this.#spenderOf(account);
    this.#turns.delete(account);
    const { bytes, begin } = spender.waiting.shift() as Waiting;
    spender.waitingBytes -= bytes;
    if (spender.waiting.length > 0) this.#turns.add(account);
    begin();
  }

  #slice(): void {
    const began = this.#now();
    let ended = began;
    for (const account of this.#turns) {
      this.#runNext(account);
      ended = this.#now();
      if (ended - began >= limits.cpu_slice_ms) break;
    }
    if (ended - this.#atOnceAt < yields_ms) this.#restsUntil = ended + (ended - began);
    this.#sliceComes = false;
    if (this.#turns.size > 0) this.#plan();
  }

  #plan(): void {
    if (this.#sliceComes) return;
    this.#sliceComes = true;
    const ms = this.#restsUntil - this.#now();
    const slice = () => this.#slice();
    // Even without a pause, the event loop first handles newly arrived calls and then runs the slice.
    if (ms > 0) this.#time.after(ms, slice);
    else this.#time.soon(slice);
  }
}
