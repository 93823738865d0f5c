/**
 * Runs Postgres maintenance in flushers: deletes rows past their maximum age, and creates partitions for future days.
 */
import {
  type ByDay,
  daysAhead,
  failuresByDay,
  keepDays,
  keptByDay,
  messagesByDay,
} from '../postgres/day_partitions.js';
import type { Pool } from '../postgres/pool.js';
import { systemTime, type Time, type Timer } from '../time.js';
import { attemptAgeMs, type Holds, keptAgeMs, purgeTombstones } from './purge.js';

const interval_ms = 60_000;
const retry_ms = 5_000;

export interface MaintenanceOptions {
  readonly pool: Pool;
  readonly holds: () => Holds;
  readonly auditDays?: number;
  readonly messageDays?: number | undefined;
  /** How many days delivered updates are kept. The default 0 keeps none. */
  readonly updatesDays?: number | undefined;
  readonly onError: (error: Error) => void;
  readonly time?: Time;
}

/** Creates the maintenance jobs, which are idle until `start`. Several processes may run the jobs at the same time. */
export function createMaintenance({
  pool,
  holds,
  auditDays,
  messageDays,
  updatesDays = 0,
  onError,
  time = systemTime,
}: MaintenanceOptions) {
  let purged = 0;
  const ahead = { delivery_failures: Number.NaN, kept_updates: Number.NaN, messages: Number.NaN };
  let timer: Timer | undefined;
  let stopped = false;

  async function keep(byDay: ByDay, ageMs: number): Promise<void> {
    try {
      const { held } = await keepDays(pool, ageMs, byDay);
      if (held > 0) throw new Error(`${byDay.table} is held by a transaction: ${held} days wait for theirs`);
    } finally {
      ahead[byDay.table] = await daysAhead(pool, byDay);
    }
  }

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
      // Creates partitions but drops none, because the retention job drops a message partition after it has removed the
      // data of its messages.
      days = await tried(keep(messagesByDay(messageDays), Number.POSITIVE_INFINITY));
      if (stopped) return;
      days = (await tried(keep(failuresByDay, attemptAgeMs(messageDays)))) && days;
      if (stopped) return;
      days = (await tried(keep(keptByDay, keptAgeMs(updatesDays, messageDays)))) && days;
    }
    if (stopped) return;
    const rows = await tried(
      purgeTombstones(pool, auditDays, messageDays, holds(), updatesDays).then((ended) => {
        purged += ended;
      }),
    );
    if (stopped) return;
    timer = time.after(days && rows ? interval_ms : retry_ms, turn).unref();
  }

  return {
    start: (): void => void turn(),
    stop() {
      stopped = true;
      time.cancel(timer);
    },
    stats: (): {
      readonly purged: number;
      /**
       * The number of future days for which the tables have partitions: `daysAhead` for delivery failures, and
       * `messageDaysAhead` for messages. NaN before the first check.
       */
      readonly daysAhead: number;
      readonly messageDaysAhead: number;
    } => ({ purged, daysAhead: ahead.delivery_failures, messageDaysAhead: ahead.messages }),
  };
}
