/**
 * Slows down client addresses that guess tokens (behaviour §13). Only tokens that never existed count as guesses. The
 * counts are in Redis, so all nodes share them. While an address must wait, a node that knows this answers without
 * asking Redis or Postgres. Calls with cached tokens skip this check. For other tokens, each slowed address is allowed
 * a few lookups per minute.
 */

import { hasExisted } from '../../postgres/accounts/leaks.js';
import { clusterSlot } from '../../redis/slots.js';
import { parseToken } from '../../rules/token.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

interface Slowed {
  readonly until: number;
  readonly lookUps: number;
  readonly countedAt: number;
}

export interface Guessing {
  /** The number of guesses allowed in a burst, or 0 for no limit. */
  readonly burst: number;
  readonly perMinute: number;
}

export class Guesses {
  readonly #context: StoreContext;
  readonly #guessing: Guessing;
  /** Tokens that were valid in the past, in plain text. They are stored only in the memory of this process. */
  readonly #former = new Set<string>();
  readonly #waiting = new Map<string, Slowed>();
  #asking = 0;
  #slowed = 0;

  constructor(context: StoreContext, guessing: Guessing) {
    this.#context = context;
    this.#guessing = guessing;
  }

  #left(address: string): number {
    return Math.max(0, (this.#waiting.get(address)?.until ?? 0) - this.#context.time.monotonic());
  }

  #slow(address: string, wait: number): void {
    const now = this.#context.time.monotonic();
    const known = this.#waiting.get(address) ?? { lookUps: 0, countedAt: now };
    this.#waiting.delete(address);
    const [longestAgo] = this.#waiting.keys();
    if (this.#waiting.size >= limits.guess_memory_max && longestAgo !== undefined)
      this.#waiting.delete(longestAgo);
    this.#waiting.set(address, { ...known, until: now + wait });
  }

  #takeLookUp(address: string): boolean {
    const known = this.#waiting.get(address);
    if (known === undefined) return true;
    const now = this.#context.time.monotonic();
    const regained = (now - known.countedAt) / limits.guess_look_up_ms;
    const lookUps = Math.max(0, known.lookUps - regained);
    if (lookUps + 1 > limits.guess_look_ups_max) return false;
    this.#waiting.set(address, { ...known, lookUps: lookUps + 1, countedAt: now });
    return true;
  }

  /**
   * Returns whether the token was ever valid. The number of lookups for slowed addresses is limited, so that Postgres
   * stays fast for other clients.
   */
  async #existed(token: string, patient: boolean): Promise<boolean> {
    if (parseToken(token) === null) return false;
    if (this.#former.has(token)) return true;
    if (!patient && this.#asking >= limits.guess_questions_max) return false;
    this.#asking++;
    try {
      // While Postgres is unreachable, assumes that the token was valid in the past. Slowing down a legitimate client
      // would be worse than not counting a guess.
      const { db, secrets } = this.#context;
      const found = await hasExisted(db, secrets.lookups(token)).catch(() => true);
      if (found) {
        if (this.#former.size >= limits.guess_memory_max) this.#former.clear();
        this.#former.add(token);
      }
      return found;
    } finally {
      this.#asking--;
    }
  }

  async #take(address: string): Promise<number> {
    const { scripts, keys } = this.#context;
    const { burst, perMinute } = this.#guessing;
    const partition = clusterSlot(address) % keys.partitions.count;
    const at = { guesses: keys.guesses(partition, address) };
    const args = { burst, interval_ms: Math.ceil(60_000 / perMinute) };
    const { wait } = await scripts.call('auth/guess', partition, at, args);
    if (wait > 0) this.#slow(address, wait);
    return wait;
  }

  /** Returns how many seconds the address must wait, or 0 for no wait. */
  refused(address: string, token: string): number {
    if (this.#guessing.burst === 0 || token === '' || address === '') return 0;
    const wait = this.#left(address);
    if (wait === 0 || (parseToken(token) !== null && this.#takeLookUp(address))) return 0;
    this.#slowed++;
    return Math.ceil(wait / 1_000);
  }

  /** True if any address was slowed recently. If false, calls skip the check. */
  get slowing(): boolean {
    return this.#waiting.size > 0;
  }

  async note(address: string, token: string): Promise<number> {
    if (this.#guessing.burst === 0 || token === '' || address === '') return 0;
    const known = this.#left(address);
    if (await this.#existed(token, known === 0)) return 0;
    const wait = known > 0 ? known : await this.#take(address).catch(() => 0);
    if (wait > 0) this.#slowed++;
    return Math.ceil(wait / 1_000);
  }

  get slowed(): number {
    return this.#slowed;
  }
}
