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
  /** A bot's attempts, newest first, below the attempt `before`. */
  list(bot: number, filter: AttemptFilter, before: number, limit: number): Promise<readonly AttemptRow[]>;
  /** All that there ever were. */
  counts(bot: number): Promise<AttemptCounts>;
}

export function createAttempts({ db }: StoreContext): Attempts {
  return {
    append: (attempts, counts) => appendAttempts(db, attempts, counts),
    list: (bot, filter, before, limit) => loadAttempts(db, bot, filter, before, limit),
    counts: (bot) => loadCounts(db, bot),
  };
}
