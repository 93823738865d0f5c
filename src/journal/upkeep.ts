/** What flushers do in Postgres besides writing: rows that are past their age end, and days to come get their partition. */
import { daysAhead, keepDays } from '../postgres/day_partitions.js';
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
    /** Days to come that have a partition for failures of deliveries; not a number before it has looked. */
    readonly daysAhead: number;
  };
}

/** Makes the upkeep; it does nothing before `start`. Any number of processes may keep one. */
export function createUpkeep({ pool, holds, auditDays, messageDays, onError }: UpkeepOptions): Upkeep {
  let purged = 0;
  let ahead = Number.NaN;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  async function keepFailures(): Promise<void> {
    try {
      const { held } = await keepDays(pool, attemptAgeMs(messageDays));
      if (held > 0)
        throw new Error(`delivery_failures is held by a transaction: ${held} days wait for theirs`);
    } finally {
      ahead = await daysAhead(pool);
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
    const days = !holds().sharded || (await tried(keepFailures()));
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
    stats: () => ({ purged, daysAhead: ahead }),
  };
}
