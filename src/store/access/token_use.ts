/**
 * Records the last day on which each of a person's tokens was used. Each node records a token once per day, without
 * delaying calls. A failed recording is not repeated, so some days may be missing.
 */
import { noteTokensUsed } from '../../postgres/accounts/users.js';
import type { Sql } from '../../postgres/sql.js';
import type { Time, Timer } from '../../time.js';
import { storeLimits as limits } from '../limits.js';

export type TokenUse = ReturnType<typeof createTokenUse>;

const day_ms = 86_400_000;

/**
 * Records the use of tokens. If Postgres is unreachable or too many records are pending, drops the record. The next
 * lookup of the token then makes a new record.
 */
export function createTokenUse(db: Sql, time: Time) {
  const noted = new Set<string>();
  let today = 0;
  let waiting: Buffer[] = [];
  let timer: Timer | undefined;

  async function flush(): Promise<void> {
    time.cancel(timer);
    timer = undefined;
    const lookups = waiting;
    waiting = [];
    if (lookups.length === 0) return;
    try {
      await noteTokensUsed(db, lookups);
    } catch {
      for (const lookup of lookups) noted.delete(lookup.toString('base64'));
    }
  }

  return {
    /** Records the use of a token. Call this where the token is looked up. `lookup` is the token's digest. */
    note(lookup: Buffer) {
      const day = Math.floor(time.now() / day_ms);
      if (day !== today || noted.size >= limits.tokens_used_noted_max) noted.clear();
      today = day;
      const text = lookup.toString('base64');
      if (noted.has(text) || waiting.length >= limits.tokens_used_waiting_max) return;
      noted.add(text);
      waiting.push(lookup);
      timer ??= time.after(limits.tokens_used_flush_ms, () => void flush()).unref();
    },
    flush,
  };
}
