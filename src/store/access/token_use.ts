/**
 * Records the day on which a person's token was last used, once per day and node, without delaying calls. Some days may
 * be missed.
 */
import { nowMs } from '../../clock.js';
import { limits } from '../../limits.js';
import { noteTokensUsed } from '../../postgres/accounts/users.js';
import type { Sql } from '../../postgres/sql.js';

export interface TokenUse {
  /** Records a use; called where a token is looked up anyway. `lookup` is the token's digest. */
  note(lookup: Buffer): void;
  /** Writes the pending records to Postgres. */
  flush(): Promise<void>;
}

const day_ms = 86_400_000;

/** Creates the recorder. If Postgres is unreachable or too many tokens are pending, a later lookup records the use. */
export function createTokenUse(db: Sql): TokenUse {
  const noted = new Set<string>();
  let today = 0;
  let waiting: Buffer[] = [];
  let timer: NodeJS.Timeout | undefined;

  async function flush(): Promise<void> {
    clearTimeout(timer);
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
    note(lookup) {
      const day = Math.floor(nowMs() / day_ms);
      if (day !== today || noted.size >= limits.tokens_used_noted_max) noted.clear();
      today = day;
      const text = lookup.toString('base64');
      if (noted.has(text) || waiting.length >= limits.tokens_used_waiting_max) return;
      noted.add(text);
      waiting.push(lookup);
      timer ??= setTimeout(() => void flush(), limits.tokens_used_flush_ms).unref();
    },
    flush,
  };
}
