/**
 * Limits how many slow calls run at the same time in this process: one per account, and a fixed number in total.
 * Further calls wait for a limited time. An account that has used more than its share of time is busy. Calls of busy
 * accounts wait behind all other calls and get only half of the slots. A few accounts therefore cannot block the calls
 * of all other accounts.
 */
import { ApiError, fail } from '../errors.js';
import { systemTime, type Time } from '../time.js';
import { createTurns } from './turns.js';

export interface TimedTurnsLimits {
  readonly atOnce: number;
  readonly waitingMax: number;
  /** How many calls of one account may wait while another call of this account runs. */
  readonly ownWaitingMax: number;
  readonly waitMsMax: number;
}

interface Waiting {
  readonly account: number | string;
  readonly begin: () => void;
}

/**
 * An account may use `share` of the time of one slot in the long run, and `burst_ms` at once. An account that has used
 * more is busy.
 */
const share = 0.2;
const burst_ms = 2_000;
/** Once this many accounts are stored, accounts whose whole burst is available again are removed. */
const accounts_max = 10_000;

export class TimedTurns {
  readonly #limits: TimedTurnsLimits;
  readonly #time: Pick<Time, 'monotonic' | 'after' | 'cancel'>;
  readonly #own: ReturnType<typeof createTurns>;
  readonly #waiting = new Set<Waiting>();
  /** The monotonic time in ms until which each account is busy. */
  readonly #busyUntil = new Map<number | string, number>();
  readonly #running = { all: 0, busy: 0 };

  constructor(limits: TimedTurnsLimits, time: Pick<Time, 'monotonic' | 'after' | 'cancel'> = systemTime) {
    this.#limits = limits;
    this.#time = time;
    this.#own = createTurns(1, limits.ownWaitingMax);
  }

  /**
   * Runs `work` when its turn comes. Throws `too_many_requests` if too many calls wait, or after this call has waited
   * for `waitMsMax`.
   */
  async run<T>(account: number | string, work: () => T | Promise<T>): Promise<T> {
    const waitEnd = this.#time.monotonic() + this.#limits.waitMsMax;
    return this.#own.run(account, async () => {
      const waitMs = waitEnd - this.#time.monotonic();
      if (waitMs <= 0) fail('too_many_requests', { retry_after: 1 });
      const wasBusy = this.#mayRun(account) ? this.#take(account) : await this.#wait(account, waitMs);
      const began = this.#time.monotonic();
      try {
        return await work();
      } finally {
        if (wasBusy) this.#running.busy--;
        this.#running.all--;
        this.#charge(account, began);
        this.#beginNext();
      }
    });
  }

  /** How many calls wait for a slot. A call that waits for its own account's running call does not count. */
  waiting(): number {
    return this.#waiting.size;
  }

  #isBusy(account: number | string): boolean {
    return (this.#busyUntil.get(account) ?? Number.NEGATIVE_INFINITY) > this.#time.monotonic();
  }

  #mayRun(account: number | string): boolean {
    const { all, busy } = this.#running;
    const { atOnce } = this.#limits;
    return all < atOnce && (busy < atOnce / 2 || !this.#isBusy(account));
  }

  /** Takes a slot. Returns whether the account is busy. */
  #take(account: number | string): boolean {
    const busy = this.#isBusy(account);
    if (busy) this.#running.busy++;
    this.#running.all++;
    return busy;
  }

  #charge(account: number | string, began: number): void {
    const now = this.#time.monotonic();
    const unused = now - burst_ms / share;
    if (this.#busyUntil.size >= accounts_max)
      for (const [each, until] of this.#busyUntil) if (until <= unused) this.#busyUntil.delete(each);
    const until = Math.max(this.#busyUntil.get(account) ?? unused, unused);
    this.#busyUntil.set(account, until + (now - began) / share);
  }

  /** Waits for a slot and takes it. Returns whether the account is busy at that time. */
  #wait(account: number | string, waitMs: number): Promise<boolean> {
    if (this.#waiting.size >= this.#limits.waitingMax) fail('too_many_requests', { retry_after: 1 });
    return new Promise((resolve, reject) => {
      const begin = () => {
        this.#time.cancel(timer);
        this.#waiting.delete(waiting);
        resolve(this.#take(account));
      };
      const waiting: Waiting = { account, begin };
      const timer = this.#time.after(waitMs, () => {
        this.#waiting.delete(waiting);
        reject(new ApiError('too_many_requests', { retry_after: 1 }));
      });
      this.#waiting.add(waiting);
    });
  }

  /** Starts one waiting call. Calls of accounts that are not busy come first. */
  #beginNext(): void {
    const waiting = [...this.#waiting];
    const next = waiting.find(({ account }) => !this.#isBusy(account)) ?? waiting[0];
    if (next !== undefined && this.#mayRun(next.account)) next.begin();
  }
}
