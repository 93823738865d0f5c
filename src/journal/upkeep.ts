/**
 * Postgres maintenance done by flushers: deletes rows that are past their age, and creates partitions for future
 * days.
 */
import { type ByDay, daysAhead, failuresByDay, keepDays, messagesByDay } from '../postgres/day_partitions.js';
import type { Pool } from '../postgres/pool.js';
import { attemptAgeMs, type Holds, purgeTombstones } from './purge.js';

const interval_ms = 60_000;
/** Delay before failed work is repeated. */
const retry_ms = 5_000;

export interface UpkeepOptions {
  readonly pool: Pool;
  /** Kinds of tables that the database holds now. */
  readonly holds: () => Holds;
  /** Days for which audit entries are kept: setting AUDIT_DAYS. */
  readonly auditDays?: number;
  /** Days for which messages are kept: setting MESSAGE_DAYS. */
  readonly messageDays?: number | undefined;
  /** Called with every failure; the upkeep continues without help. */
  readonly onError: (error: Error) => void;
}

export interface Upkeep {
  start(): void;
  /** Starts no more work; work in progress still completes. */
  stop(): void;
  stats(): {
    /** Number of rows deleted. */
    readonly purged: number;
    /**
     * Future days for which the tables of delivery failures and of messages have a partition; NaN before the first
     * check.
     */
    readonly daysAhead: number;
    readonly messageDaysAhead: number;
  };
}

/** Creates the upkeep; it is idle until `start`. Any number of processes may run one. */
export function createUpkeep({ pool, holds, auditDays, messageDays, onError }: UpkeepOptions): Upkeep {
  let purged = 0;
  const ahead = { delivery_failures: Number.NaN, messages: Number.NaN };
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  async function keep(byDay: ByDay, ageMs: number): Promise<void> {
    try {
      const { held } = await keepDays(pool, ageMs, byDay);
      if (held > 0) throw new Error(`${byDay.table} is held by a transaction: ${held} days wait for theirs`);
    } finally {
      ahead[byDay.table] = await daysAhead(pool, byDay);
    }
  }

  /** Reports a failure. Returns true if the work succeeded. */
  async function tried(work: Promise<void>): Promise<boolean> {
    try {
      await work;
      return true;
    } catch (error) {
      if (!stopped) onError(error as Error);
      return false;
    }
  }

  async function turn(): Promise<void> {
    let days = true;
    if (holds().sharded) {
      // Partitions of messages are dropped by the retention job, which first removes data that belongs to the
      // messages.
      days = await tried(keep(messagesByDay(messageDays), Number.POSITIVE_INFINITY));
      if (stopped) return;
      days = (await tried(keep(failuresByDay, attemptAgeMs(messageDays)))) && days;
    }
    if (stopped) return;
    const rows = await tried(
      purgeTombstones(pool, auditDays, messageDays, holds()).then((ended) => {
        purged += ended;
      }),
    );
    if (stopped) return;
    timer = setTimeout(turn, days && rows ? interval_ms : retry_ms);
    timer.unref();
  }

  return {
    start: () => void turn(),
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
    stats: () => ({ purged, daysAhead: ahead.delivery_failures, messageDaysAhead: ahead.messages }),
  };
}
