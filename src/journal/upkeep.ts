/** What flushers do in Postgres besides writing: rows that are past their age end, and days to come get their partition. */
import { type ByDay, daysAhead, failuresByDay, keepDays, messagesByDay } from '../postgres/day_partitions.js';
import type { Pool } from '../postgres/pool.js';
import { attemptAgeMs, type Holds, purgeTombstones } from './purge.js';

const interval_ms = 60_000;
/** What failed is tried again after this. */
const retry_ms = 5_000;

export interface UpkeepOptions {
  readonly pool: Pool;
  /** What the database holds now. */
  readonly holds: () => Holds;
  /** Setting AUDIT_DAYS. */
  readonly auditDays?: number;
  /** Setting MESSAGE_DAYS. */
  readonly messageDays?: number | undefined;
  /** Told of every failure; the upkeep goes on by itself. */
  readonly onError: (error: Error) => void;
}

export interface Upkeep {
  start(): void;
  /** Begins nothing more; what runs ends by itself. */
  stop(): void;
  stats(): {
    /** Rows that ended. */
    readonly purged: number;
    /** Days to come that have a partition for failures of deliveries, and for messages; not a number before it has looked. */
    readonly daysAhead: number;
    readonly messageDaysAhead: number;
  };
}

/** Makes the upkeep; it does nothing before `start`. Any number of processes may keep one. */
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

  /** True when all was done. */
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
      // Retention drops those of messages: it looks first what hangs on them.
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
