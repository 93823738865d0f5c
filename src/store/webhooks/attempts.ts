/** Attempts to deliver to webhooks, as owners see them; diagnostics that no delivery waits for. */
import {
  type AttemptCounts,
  type AttemptFilter,
  type AttemptRow,
  appendAttempts,
  loadAttempts,
  loadCounts,
  type NewAttempt,
  type RefusedAttempt,
} from '../../postgres/attempts.js';
import type { StoreContext } from '../core/context.js';

export type { AttemptCounts, AttemptRow, NewAttempt, RefusedAttempt };

export interface Attempts {
  /** Returns the attempts that Postgres refuses for their data: they are counted and not kept. */
  append(
    attempts: readonly NewAttempt[],
    counts: ReadonlyMap<number, AttemptCounts>,
  ): Promise<readonly RefusedAttempt[]>;
  /** A page of a bot's attempts, newest first, `cursor` as the page before gave it. */
  list(
    bot: number,
    filter: AttemptFilter,
    cursor: number | null,
    limit: number,
  ): Promise<{ readonly items: readonly AttemptRow[]; readonly next: number | null }>;
  /** All that there ever were. */
  counts(bot: number): Promise<AttemptCounts>;
}

export function createAttempts({ db }: StoreContext): Attempts {
  return {
    append: (attempts, counts) => appendAttempts(db, attempts, counts),
    async list(bot, filter, cursor, limit) {
      const rows = await loadAttempts(db, bot, filter, cursor ?? Number.MAX_SAFE_INTEGER, limit + 1);
      const items = rows.slice(0, limit);
      return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
    },
    counts: (bot) => loadCounts(db, bot),
  };
}
