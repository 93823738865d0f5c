/**
 * Keeps attempts for owners: gathered here, written to Postgres a few times a second, and never waited for. A process that is
 * killed loses at most what it has gathered since; while Postgres is away, failures past a bound are only counted.
 */
import { limits } from '../limits.js';
import type { AttemptCounts, NewAttempt } from '../store/attempts.js';
import type { DeadReason, Delivery } from '../store/deliveries.js';
import { packUpdate } from '../store/update_record.js';
import type { AttemptFacts } from './context.js';
import { errorMessageOf, isDelivered, type Outcome } from './outcome.js';
import { beginningOf, shownAnswer } from './redact.js';

export interface Recorder {
  /** One of `DrainContext.onOutcome`. */
  note(
    bot: number,
    delivery: Delivery,
    outcome: Outcome | null,
    dead: DeadReason | null,
    attempt: AttemptFacts,
  ): void;
  start(): void;
  /** Writes what is left, once. */
  stop(): Promise<void>;
  /** Attempts that wait to be written. */
  waiting(): number;
}

export interface RecorderOptions {
  append(attempts: readonly NewAttempt[], counts: ReadonlyMap<number, AttemptCounts>): Promise<void>;
  onError(error: unknown): void;
}

/** What is made into a row when it is written: most successes never are. */
interface Gathered {
  readonly facts: Omit<NewAttempt, 'answer' | 'record'>;
  readonly beginning: Buffer;
  readonly secrets: readonly string[];
  readonly fields: readonly Buffer[] | null;
  /** of `fields` */
  readonly bytes: number;
}

interface OfBot {
  readonly counts: { -readonly [K in keyof AttemptCounts]: number };
  readonly failures: Gathered[];
  readonly successes: Gathered[];
}

const rowsMax = 1_000;
const reasons: Readonly<Record<DeadReason, string>> = {
  expired: 'The update is too old',
  too_large: 'The update is too large',
  queue_full: 'The queue is full',
};
const nothing = Buffer.alloc(0);

function gather(
  room: number,
  bot: number,
  delivery: Delivery,
  outcome: Outcome | null,
  dead: DeadReason | null,
  { tries, nextAtMs, secrets }: AttemptFacts,
): Gathered {
  const answered = outcome?.kind === 'answered' ? outcome : null;
  const delivered = outcome !== null && isDelivered(outcome);
  const why = dead === null ? '' : reasons[dead];
  const kept = delivered && delivery.bytes <= Math.min(room, limits.delivery_record_kept_bytes_max);
  return {
    facts: {
      ...{ bot, updateId: delivery.entry.shownId, at: Date.now(), delivered, tries, dead },
      status: answered?.status ?? null,
      error: delivered ? null : outcome === null ? why : errorMessageOf(outcome),
      latencyMs: outcome?.latencyMs ?? 0,
      nextTryAt: nextAtMs,
    },
    beginning: answered === null ? nothing : beginningOf(answered.body),
    secrets,
    fields: kept ? delivery.fields : null,
    bytes: kept ? delivery.bytes : 0,
  };
}

const rowOf = ({ facts, beginning, secrets, fields }: Gathered): NewAttempt => ({
  ...facts,
  answer: shownAnswer(beginning, secrets),
  record: fields && packUpdate(fields),
});

export function createRecorder({ append, onError }: RecorderOptions): Recorder {
  const bots = new Map<number, OfBot>();
  let waiting = 0;
  let recordBytes = 0;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> | undefined;

  function of(bot: number): OfBot {
    const known = bots.get(bot);
    if (known) return known;
    const made: OfBot = {
      counts: { delivered: 0, failed: 0, dead: 0, unkept: 0 },
      ...{ failures: [], successes: [] },
    };
    bots.set(bot, made);
    return made;
  }

  /** Counts what is gathered, or what is gathered no more. */
  function weigh(gathered: readonly Gathered[], sign: 1 | -1): void {
    waiting += sign * gathered.length;
    for (const { bytes } of gathered) recordBytes += sign * bytes;
  }

  function keep(list: Gathered[], ...given: Parameters<Recorder['note']>): void {
    const room = limits.delivery_records_waiting_bytes_max - recordBytes;
    const gathered = gather(room, ...given);
    list.push(gathered);
    weigh([gathered], 1);
  }

  function note(...given: Parameters<Recorder['note']>): void {
    const [bot, , outcome, dead] = given;
    const { counts, failures, successes } = of(bot);
    if (dead !== null) counts.dead++;
    const full = waiting >= limits.delivery_attempts_waiting_max;
    if (outcome === null || !isDelivered(outcome)) {
      if (outcome !== null) counts.failed++;
      if (full) counts.unkept++;
      else keep(failures, ...given);
      return;
    }
    counts.delivered++;
    // Older ones would be deleted as soon as they were written.
    if (successes.length >= limits.delivery_successes_kept) weigh(successes.splice(0, 1), -1);
    else if (full) return;
    keep(successes, ...given);
  }

  function take(): ReadonlyMap<number, OfBot> {
    const taken = new Map<number, OfBot>();
    let rows = 0;
    for (const [bot, own] of bots) {
      if (rows >= rowsMax || taken.size >= rowsMax) break;
      bots.delete(bot);
      taken.set(bot, own);
      rows += own.failures.length + own.successes.length;
      weigh([...own.failures, ...own.successes], -1);
    }
    return taken;
  }

  /** What could not be written waits on, before what came meanwhile. */
  function giveBack(taken: ReadonlyMap<number, OfBot>): void {
    for (const [bot, own] of taken) {
      const present = of(bot);
      for (const name of ['delivered', 'failed', 'dead', 'unkept'] as const)
        present.counts[name] += own.counts[name];
      const successes = [...own.successes, ...present.successes];
      const older = successes.slice(0, -limits.delivery_successes_kept);
      const kept = own.successes.slice(older.length);
      present.successes.unshift(...kept);
      present.failures.unshift(...own.failures);
      weigh([...kept, ...own.failures], 1);
    }
  }

  async function write(): Promise<void> {
    while (bots.size > 0) {
      const taken = take();
      const rows = [...taken.values()].flatMap(({ failures, successes }) => [...failures, ...successes]);
      try {
        await append(rows.map(rowOf), new Map([...taken].map(([bot, { counts }]) => [bot, counts])));
      } catch (error) {
        giveBack(taken);
        throw error;
      }
    }
  }

  return {
    note,
    start() {
      timer = setInterval(() => {
        writing ??= write()
          .catch(onError)
          .finally(() => {
            writing = undefined;
          });
      }, limits.delivery_attempts_flush_ms);
      timer.unref();
    },
    async stop() {
      clearInterval(timer);
      await writing;
      await write().catch(onError);
    },
    waiting: () => waiting,
  };
}
