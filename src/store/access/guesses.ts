/**
 * Slows client addresses that try tokens which never existed (behaviour §13). Only a call that was refused for its token comes
 * here, so a good token costs nothing and is never held up. The count is Redis', so it is the same on every node.
 */
import { limits } from '../../limits.js';
import { hasExisted } from '../../postgres/leaks.js';
import { clusterSlot } from '../../redis/slots.js';
import { parseToken } from '../../rules/token.js';
import type { StoreContext } from '../core/context.js';

export interface Guesses {
  /** Notes a token that is not valid. Seconds for which the address is to wait; 0 when the call is merely refused. */
  note(address: string, token: string): Promise<number>;
  /** Calls that were slowed by this node. */
  readonly slowed: number;
}

export interface Guessing {
  /** Guesses that an address may make at once; 0 for no bound. */
  readonly burst: number;
  readonly perMinute: number;
}

export function createGuesses({ db, scripts, keys, secrets }: StoreContext, guessing: Guessing): Guesses {
  const { burst, perMinute } = guessing;
  /** Tokens that were valid once stay so. By their text: this is a node's memory. */
  const former = new Set<string>();
  /** Until when an address is to wait, by the monotonic clock. */
  const waiting = new Map<string, number>();
  let asking = 0;
  let slowed = 0;

  const left = (address: string) => Math.max(0, (waiting.get(address) ?? 0) - performance.now());

  /** Whether the token is one that was valid once. An address that is slowed cannot make others wait for Postgres. */
  async function existed(token: string, patient: boolean): Promise<boolean> {
    if (parseToken(token) === null) return false;
    if (former.has(token)) return true;
    if (!patient && asking >= limits.guess_questions_max) return false;
    asking++;
    try {
      // With Postgres away nobody is slowed for what cannot be known.
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
    if (wait > 0) {
      if (waiting.size >= limits.guess_memory_max) waiting.clear();
      waiting.set(address, performance.now() + wait);
    }
    return wait;
  }

  return {
    async note(address, token) {
      if (burst === 0 || token === '' || address === '') return 0;
      const known = left(address);
      if (await existed(token, known === 0)) return 0;
      // Redis away is no reason to slow anybody.
      const wait = known > 0 ? known : await take(address).catch(() => 0);
      if (wait > 0) slowed++;
      return Math.ceil(wait / 1_000);
    },
    get slowed() {
      return slowed;
    },
  };
}
