/** Notes the day on which a token of a person was last used: beside the call, once a day and node, and only as a service. */
import { nowMs } from '../../clock.js';
import { limits } from '../../limits.js';
import { noteTokensUsed } from '../../postgres/accounts/users.js';
import type { Sql } from '../../postgres/sql.js';

export interface TokenUse {
  /** To be called where a token is looked up anyway. `lookup` is its digest. */
  note(lookup: Buffer): void;
  /** Writes what waits. */
  flush(): Promise<void>;
}

const day_ms = 86_400_000;

/** With Postgres away, or more tokens than it takes note of, days are noted with a later look-up. */
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
