/**
 * Slows client addresses that guess tokens (behaviour §13): only tokens that never existed count. The count is in
 * Redis, so all nodes share it.
 *
 * While an address must wait, its node answers without asking Redis or Postgres. Valid tokens still work: cached ones
 * bypass this check, and each such address has a few lookups per minute for others.
 */
import { limits } from '../../limits.js';
import { hasExisted } from '../../postgres/accounts/leaks.js';
import { clusterSlot } from '../../redis/slots.js';
import { parseToken } from '../../rules/token.js';
import type { StoreContext } from '../core/context.js';

export interface Guesses {
  /** Seconds for which an address must wait before this token may be looked up; 0 if it may be now. */
  refused(address: string, token: string): number;
  /** Whether any address was slowed recently. If not, calls skip the check. */
  readonly slowing: boolean;
  /** Records an invalid token. Returns the seconds for which the address must wait; 0 if it need not. */
  note(address: string, token: string): Promise<number>;
  /** Calls slowed by this node. */
  readonly slowed: number;
}

interface Slowed {
  /** end of the wait, by the monotonic clock */
  readonly until: number;
  /** number of lookups used, and when they were counted */
  readonly lookUps: number;
  readonly countedAt: number;
}

export interface Guessing {
  /** Guesses that an address may make at once; 0 for unlimited. */
  readonly burst: number;
  readonly perMinute: number;
}

export function createGuesses({ db, scripts, keys, secrets }: StoreContext, guessing: Guessing): Guesses {
  const { burst, perMinute } = guessing;
  /** Tokens known to have been valid once. The plain tokens are only kept in this process's memory. */
  const former = new Set<string>();
  const waiting = new Map<string, Slowed>();
  let asking = 0;
  let slowed = 0;

  const left = (address: string) => Math.max(0, (waiting.get(address)?.until ?? 0) - performance.now());

  /** Slows an address. One that was slowed before keeps its count of used lookups. */
  function slow(address: string, wait: number): void {
    const now = performance.now();
    const known = waiting.get(address) ?? { lookUps: 0, countedAt: now };
    waiting.delete(address);
    const [longestAgo] = waiting.keys();
    if (waiting.size >= limits.guess_memory_max && longestAgo !== undefined) waiting.delete(longestAgo);
    waiting.set(address, { ...known, until: now + wait });
  }

  /** Uses one lookup of a slowed address. Returns false if none is left. */
  function takeLookUp(address: string): boolean {
    const known = waiting.get(address);
    if (known === undefined) return true;
    const now = performance.now();
    const regained = (now - known.countedAt) / limits.guess_look_up_ms;
    const lookUps = Math.max(0, known.lookUps - regained);
    if (lookUps + 1 > limits.guess_look_ups_max) return false;
    waiting.set(address, { ...known, lookUps: lookUps + 1, countedAt: now });
    return true;
  }

  /** Whether the token was ever valid. Limits lookups of slowed addresses, so that they cannot delay others in Postgres. */
  async function existed(token: string, patient: boolean): Promise<boolean> {
    if (parseToken(token) === null) return false;
    if (former.has(token)) return true;
    if (!patient && asking >= limits.guess_questions_max) return false;
    asking++;
    try {
      // If Postgres is unreachable, assume that the token existed rather than slow a legitimate client.
      const found = await hasExisted(db, secrets.lookups(token)).catch(() => true);
      if (found) {
        if (former.size >= limits.guess_memory_max) former.clear();
        former.add(token);
      }
      return found;
    } finally {
      asking--;
    }
  }

  async function take(address: string): Promise<number> {
    const partition = clusterSlot(address) % keys.partitions.count;
    const { wait } = await scripts.call(
      'auth/guess',
      partition,
      { guesses: keys.guesses(partition, address) },
      { burst, interval_ms: Math.ceil(60_000 / perMinute) },
    );
    if (wait > 0) slow(address, wait);
    return wait;
  }

  return {
    refused(address, token) {
      if (burst === 0 || token === '' || address === '') return 0;
      const wait = left(address);
      if (wait === 0 || (parseToken(token) !== null && takeLookUp(address))) return 0;
      slowed++;
      return Math.ceil(wait / 1_000);
    },
    get slowing() {
      return waiting.size > 0;
    },
    async note(address, token) {
      if (burst === 0 || token === '' || address === '') return 0;
      const known = left(address);
      if (await existed(token, known === 0)) return 0;
      // If Redis is unreachable, nobody is slowed.
      const wait = known > 0 ? known : await take(address).catch(() => 0);
      if (wait > 0) slowed++;
      return Math.ceil(wait / 1_000);
    },
    get slowed() {
      return slowed;
    },
  };
}
